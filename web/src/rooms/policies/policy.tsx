import type { Policy } from '../../../../src/client/wire.ts'
import { paths, withQuery } from '../../paths.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, Skeleton } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'

interface Props {
  readonly name: string
  readonly policy: Policy | undefined
  /** The listing is there: what it does not have does not exist. */
  readonly isRead: boolean
  readonly back: string
}

/** One policy, as the configuration has it. */
export function PolicyDetail({ name, policy, isRead, back }: Props) {
  return (
    <Detail
      kind="Policy"
      title={visible(name)}
      back={back}
      actions={<ButtonLink href={withQuery(paths.agents(), { policy: name })}>Its agents</ButtonLink>}
    >
      {policy === undefined && !isRead && <Skeleton lines={6} />}
      {policy === undefined && isRead && (
        <Empty title="There is no such policy now">
          Policies are in the configuration. An agent may be of one that is not there any more.
        </Empty>
      )}
      {policy !== undefined && <PolicyFacts policy={policy} />}
    </Detail>
  )
}

function PolicyFacts({ policy }: { readonly policy: Policy }) {
  return (
    <>
      <Facts>
        <Fact name="Names">
          <code>{visible(policy.pattern)}</code>
        </Fact>
        <Fact name="Approves">
          {policy.auto_approve ? (
            <Status look="ok">at once, within its limits</Status>
          ) : (
            <Status look="wait">a person decides</Status>
          )}
        </Fact>
        <Fact name="Its agents">
          {policy.suffix === true ? 'each gets a name of its own' : 'have the name that they ask for'}
        </Fact>
      </Facts>
      <Section title="What its agents may have">
        <Facts>
          <Fact name="Scopes">
            <Scopes scopes={policy.scopes} />
          </Fact>
          <Fact name="Never">
            <Scopes scopes={policy.deny} none="nothing more is refused" />
          </Fact>
          {policy.audiences !== undefined && (
            <Fact name="Audiences">
              <Scopes scopes={policy.audiences} />
            </Fact>
          )}
        </Facts>
      </Section>
      <Section title="Its limits">
        <Facts>
          <Fact name="An agent lives">{policy.max_agent_lifetime ?? 'without end'}</Fact>
          <Fact name="A credential lasts">{policy.max_ttl ?? 'as long as the backend allows'}</Fact>
          <Fact name="Agents at a time">{policy.max_agents ?? 'any number'}</Fact>
          <Fact name="Approvals">{policy.rate ?? 'any number'}</Fact>
          <Fact name="Credentials issued">{policy.issue_rate ?? 'as the server allows'}</Fact>
          <Fact name="Live at a time">{policy.max_active ?? 'as the server allows'}</Fact>
        </Facts>
      </Section>
    </>
  )
}
