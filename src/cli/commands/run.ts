import { constants } from 'node:os'
import { MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from '../../domain/limits.ts'
import { readDuration } from '../frame/duration.ts'
import { usage } from '../frame/failure.ts'
import { flag, off, text, type ValuesOf } from '../frame/options.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import type { RunWish } from '../run/open-run.ts'
import { PROXY_OPTIONS, proxyOfCommand } from '../run/proxy-options.ts'
import type { Redaction } from '../run/redact.ts'
import { CREDENTIAL_OPTIONS, readRequested } from '../run/requested-credentials.ts'
import { supervise } from '../run/supervise.ts'
import { LOGIN_VARIABLES } from '../session/session.ts'

const OPTIONS = {
  ...CREDENTIAL_OPTIONS,
  proxy: flag(
    'give the command placeholders, and let a second process put the secrets into its requests: see docs/guides/proxy.md',
  ),
  noProxy: off('give the command the secrets, also where the .mayfly.yaml says `proxy`'),
  ...PROXY_OPTIONS,
  redact: flag('redact the secrets in the output of the command'),
  grace: text('<duration>', 'time from SIGTERM, or the loss of the terminal, to SIGKILL', {
    default: '8s',
  }),
  heartbeat: text(
    '<duration>',
    'how often to tell the server that the command runs, 1s to 1h; without four in a row its credentials end; default: as the server says, 10s',
  ),
  purpose: text('<text>', 'what the run is for, as administrators and the audit see it'),
  onEnd: text('<signal>', 'what the command gets when the run was ended elsewhere', { default: 'SIGTERM' }),
  noRun: off('issue the credentials without a run: if this process is killed, they live until they expire'),
  verbose: flag('say when the server has no runs'),
  guard: flag(
    'seldom needed beside a run: start a second process that revokes the credentials at once if this one is killed with SIGKILL',
  ),
  keepLogin: flag('keep the login of mayfly in the environment of the command'),
}

export const verb = defineVerb({
  description:
    'Runs a command with credentials and revokes them when it ends, however it ends: they belong to a run, and die with it. ' +
    'Also after `kill -9`, a lost network or a pulled cable: then the server hears no heartbeat, and ends them within four intervals (--heartbeat). Exits with the code of the ' +
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
    'mayfly run --proxy --backend claude --backend github -- claude':
      'with placeholders: a proxy beside it puts the secrets into its requests',
  },
  json: 'one line on standard error after the command has ended: {run, credentials: [{id, backend, expires_at, revoked}], exit_code}, with a proxy also proxy: {requests, refused, misused, redacted, lost, dead_after_ms}',
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const { credentials: requested, proxy: ofProject } = await readRequested(context, options)
    const proxy = await proxyOfCommand(options, ofProject)
    if (proxy !== undefined) checkProxied(options)
    const graceMs = await readDuration('--grace', options.grace, LONGEST_GRACE_MS)
    const run = options.run === false ? undefined : await readRunWish(options)
    const redaction = options.redact === true ? await newRedaction(context, options) : undefined
    const env = withoutLogin(context.env, options.keepLogin === true, proxy !== undefined)
    const supervised = { name: command, args, graceMs, isGuarded: options.guard === true, run, redaction }
    return supervise(context, supervised, async (preparation) => {
      // Loaded while the server begins the run.
      if (proxy !== undefined) {
        const { prepareThroughProxy } = await import('../run/through-proxy.ts')
        return prepareThroughProxy(context, preparation, { requested, env, redaction, settings: proxy })
      }
      const { deliverAll } = await import('../run/prepare.ts')
      return deliverAll(context, preparation, { requested, env, redaction })
    })
  },
})

async function newRedaction({ env }: Context, { keepLogin }: ValuesOf<typeof OPTIONS>): Promise<Redaction> {
  const { createRedaction } = await import('../run/redact.ts')
  const redaction = createRedaction()
  if (keepLogin === true)
    for (const name of ['MAYFLY_TOKEN', 'MAYFLY_CLIENT_SECRET', 'MAYFLY_ID_TOKEN'])
      redaction.add(env[name] ?? '')
  return redaction
}

async function readRunWish({
  heartbeat,
  purpose,
  onEnd,
  verbose,
}: ValuesOf<typeof OPTIONS>): Promise<RunWish> {
  if (heartbeat !== undefined)
    await readDuration('--heartbeat', heartbeat, MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS)
  return { heartbeat, purpose, onEnd: readSignal(onEnd), isVerbose: verbose === true }
}

/** The value of --on-end, as `SIGTERM`, `TERM` or `term`. */
function readSignal(given: string): NodeJS.Signals {
  const name = given.toUpperCase().replace(/^(?!SIG)/, 'SIG')
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals
  throw usage(`--on-end: ${JSON.stringify(given.slice(0, 40))} is no signal.`, 'Example: --on-end SIGINT.')
}

const LONGEST_GRACE_MS = 3_600_000

/** Variables that let their holder act as the agent. */
const LOGIN: ReadonlySet<string> = new Set(LOGIN_VARIABLES)

/** Those of platforms whose tokens let a job log in. */
const IDENTITY: ReadonlySet<string> = new Set([
  'ACTIONS_ID_TOKEN_REQUEST_TOKEN',
  'ACTIONS_ID_TOKEN_REQUEST_URL',
  'SPIFFE_ENDPOINT_SOCKET',
])

/** The command receives credentials, so it needs no login of its own. */
function withoutLogin(
  env: Surroundings['env'],
  keepsLogin: boolean,
  isProxied: boolean,
): Surroundings['env'] {
  const isLogin = (name: string) => LOGIN.has(name) || (isProxied && IDENTITY.has(name))
  return keepsLogin ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !isLogin(name)))
}

function checkProxied({ keepLogin, run }: ValuesOf<typeof OPTIONS>): void {
  if (keepLogin === true)
    throw usage('--keep-login would let the command get the secrets itself.', 'Leave it out with a proxy.')
  if (run === false) throw usage('The credentials of a proxy end with a run.', 'Leave out --no-run.')
}
