import { readDuration } from '../frame/duration.ts'
import { flag, text, type ValuesOf } from '../frame/options.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { deliverAll } from '../run/prepare.ts'
import type { Redaction } from '../run/redact.ts'
import { CREDENTIAL_OPTIONS, readRequestedCredentials } from '../run/requested-credentials.ts'
import { supervise } from '../run/supervise.ts'
import { LOGIN_VARIABLES } from '../session/session.ts'

const OPTIONS = {
  ...CREDENTIAL_OPTIONS,
  redact: flag('redact the secrets in the output of the command'),
  grace: text('<duration>', 'time from SIGTERM, or the loss of the terminal, to SIGKILL', {
    default: '8s',
  }),
  guard: flag('start a second process that revokes the credentials if this one is killed with SIGKILL'),
  keepLogin: flag('keep the login of mayfly in the environment of the command'),
}

export const verb = defineVerb({
  description:
    'Runs a command with credentials and revokes them when it ends, however it ends. Exits with the code of the ' +
    'command: 128 plus the signal number if a signal ended it, 127 if the command is not found, 126 if it cannot be ' +
    'executed. Without --backend, --env and --file it uses the credentials listed in the .mayfly.yaml of the current ' +
    'directory, or of the nearest one above it in the repository, after `mayfly allow`. Credentials in files are renewed while the command runs; those in variables cannot be.',
  arguments: [
    { name: '<command>', description: 'the command to run, without a shell' },
    { name: '[args...]', description: 'its arguments, unchanged' },
  ],
  options: OPTIONS,
  examples: {
    'mayfly run --backend orders-db -- psql': 'with PGHOST, PGUSER, PGPASSWORD, … of a new credential',
    "mayfly run -- psql -c 'select current_user'": 'with the credentials listed in .mayfly.yaml',
    'mayfly run --env PGPASSWORD=orders-db:password --env PGUSER=orders-db:username -- psql':
      'two fields of one credential',
    'mayfly run --file TOKEN_FILE=reports --ttl 5m --redact -- ./nightly.sh':
      'in a file that is renewed, and never in the output',
  },
  json: 'one line on standard error after the command has ended: {credentials: [{id, backend, expires_at, revoked}], exit_code}',
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const requested = await readRequestedCredentials(context, options)
    const graceMs = await readDuration('--grace', options.grace, LONGEST_GRACE_MS)
    const redaction = options.redact === true ? await newRedaction(context, options) : undefined
    const env = withoutLogin(context.env, options.keepLogin === true)
    const supervised = { name: command, args, graceMs, isGuarded: options.guard === true, redaction }
    return supervise(context, supervised, (run) => deliverAll(context, run, { requested, env, redaction }))
  },
})

async function newRedaction({ env }: Context, { keepLogin }: ValuesOf<typeof OPTIONS>): Promise<Redaction> {
  const { createRedaction } = await import('../run/redact.ts')
  const redaction = createRedaction()
  if (keepLogin === true)
    for (const name of ['MAYFLY_TOKEN', 'MAYFLY_CLIENT_SECRET']) redaction.add(env[name] ?? '')
  return redaction
}

const LONGEST_GRACE_MS = 3_600_000

/** Variables that let their holder act as the agent. */
const LOGIN: ReadonlySet<string> = new Set(LOGIN_VARIABLES)

/** The command receives credentials, so it needs no login of its own. */
function withoutLogin(env: Surroundings['env'], keepsLogin: boolean): Surroundings['env'] {
  return keepsLogin ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !LOGIN.has(name)))
}
