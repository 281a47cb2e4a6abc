import type { CreatedAgent, RotatedAgent } from '../../../../src/client/wire.ts'
import { Button } from '../../ui/button.tsx'
import { Snippet } from '../../ui/copy.tsx'
import { ShownOnce } from '../../ui/shown-once.tsx'
import { Time } from '../../ui/time.tsx'

interface Props {
  readonly made: CreatedAgent | RotatedAgent
  readonly onDone: () => void
}

/** The new secrets of an agent, and what its machine does with them. */
export function Secrets({ made, onDone }: Props) {
  const { name, token, oidc } = made
  return (
    <ShownOnce title={`The secrets of ${name}`}>
      {'previous_valid_until' in made && (
        <p className="text-sm">
          The old ones{' '}
          {made.previous_valid_until === null ? (
            'have ended.'
          ) : (
            <>
              end <Time at={made.previous_valid_until} />.
            </>
          )}
        </p>
      )}
      <Secret name="Token" text={token} />
      <Secret name="Client id" text={oidc.client_id} />
      <Secret name="Client secret" text={oidc.client_secret} />
      <div>
        <h4 className="mb-1 text-sm font-semibold">On its machine, a login that stays</h4>
        <Snippet text={`mayfly login --server ${location.origin}`} what="the command to log in" />
        <p className="mt-1 text-xs text-muted">It asks for the token, so that no shell keeps it.</p>
      </div>
      <div>
        <h4 className="mb-1 text-sm font-semibold">In a job, as variables</h4>
        <Snippet
          text={`export MAYFLY_SERVER=${location.origin}\nexport MAYFLY_TOKEN=${token}`}
          what="the variables"
        />
      </div>
      <div>
        <h4 className="mb-1 text-sm font-semibold">Then</h4>
        <Snippet text="mayfly status" what="the command that shows what it may do" />
      </div>
      <div>
        <Button look="primary" onClick={onDone}>
          Done, hide them
        </Button>
      </div>
    </ShownOnce>
  )
}

function Secret({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <h4 className="mb-1 text-sm font-semibold">{name}</h4>
      <Snippet text={text} what={`the ${name.toLowerCase()}`} />
    </div>
  )
}
