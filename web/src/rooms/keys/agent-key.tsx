import { Link } from 'wouter'
import type { AgentKey } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { Copy, Snippet } from '../../ui/copy.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { Empty, Skeleton } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

interface Props {
  readonly id: string
  readonly row: AgentKey | undefined
  readonly isLoaded: boolean
  readonly back: string
}

/** The public key of one agent, for those who verify what it signed. */
export function AgentKeyDetail({ id, row, isLoaded, back }: Props) {
  return (
    <Detail
      kind="Signing key"
      title={<code className="text-base">{id}</code>}
      back={back}
      actions={
        <CopyAs
          command={`mayfly keys ls --agent ${row?.name ?? 'NAME'} --armor | gpg --import`}
          request="GET /v1/admin/keys"
        />
      }
    >
      {row === undefined ? (
        isLoaded ? (
          <Empty title="No agent has this key">An agent that is deleted takes its key with it.</Empty>
        ) : (
          <Skeleton lines={6} />
        )
      ) : (
        <>
          <Facts>
            <Fact name="Agent">
              <Link className="text-accent underline" href={paths.agent(row.name)}>
                {row.name}
              </Link>
            </Fact>
            <Fact name="Signs as">
              <Hostile text={row.email} />
            </Fact>
            <Fact name="Key id">
              <code>{row.key_id}</code> <Copy text={row.key_id} what="the key id" />
            </Fact>
            <Fact name="Made">
              <Time at={row.created_at} />
            </Fact>
          </Facts>
          <Section title="Public key, for gpg --import and for git hosts">
            <Snippet text={row.public_key.trimEnd()} what="the public key" />
          </Section>
        </>
      )}
    </Detail>
  )
}
