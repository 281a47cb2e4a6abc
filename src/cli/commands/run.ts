import { type CliError, usage } from '../frame/failure.ts'
import { oneLine } from '../frame/output.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { withoutLogin } from '../run/child-environment.ts'
import { findCommand, NOT_FOUND } from '../run/find-command.ts'
import type { Redaction } from '../run/redact.ts'
import { readWishes, type WishOptions } from '../run/requested-credentials.ts'

interface Options extends WishOptions {
  grace: string
  redact?: boolean
  keepLogin?: boolean
  guard?: boolean
}

export const verb = defineVerb<Options, [command: string, args: string[]]>({
  description:
    'Runs a command with credentials, and revokes them when it ends, however it ends. It leaves with the exit code ' +
    'of the command: 128 and the number of the signal that ended it, 127 when there is no such command, 126 when it ' +
    'cannot be run. Without any of --backend, --env and --file it takes the credentials that the mayfly.yaml in the ' +
    'directory names. What is given in files is renewed while the command runs; what is given in variables cannot be.',
  arguments: [
    { name: '<command>', description: 'what is run, without a shell' },
    { name: '[args...]', description: 'its arguments, as they are' },
  ],
  options: [
    {
      flags: '--backend <name>',
      description: 'all parts of a credential as variables, named as by `mayfly get -o env`; may be repeated',
      repeatable: true,
    },
    {
      flags: '--env <VARIABLE=backend:field>',
      description: 'one part as a variable, the token where no field is named; may be repeated',
      repeatable: true,
    },
    {
      flags: '--file <VARIABLE=backend:field>',
      description: 'one part in a private file, and its path in the variable; may be repeated',
      repeatable: true,
    },
    { flags: '--ttl <duration>', description: 'how long they live, such as 10m' },
    {
      flags: '--scope <scope>',
      description: 'only this scope; with several backends BACKEND:SCOPE; may be repeated',
      repeatable: true,
    },
    {
      flags: '--param <name=value>',
      description: 'option of this kind of backend; name:=json for other than text; may be repeated',
      repeatable: true,
    },
    { flags: '--config <file>', description: 'a file as mayfly.yaml, beside what flags name' },
    { flags: '--no-config', description: 'leave the mayfly.yaml in the directory alone' },
    { flags: '--redact', description: 'take the secrets out of what the command prints' },
    {
      flags: '--grace <duration>',
      description: 'from SIGTERM, or the loss of the terminal, to SIGKILL',
      default: '8s',
    },
    {
      flags: '--guard',
      description: 'start a second process that revokes when this one is killed with SIGKILL',
    },
    { flags: '--keep-login', description: 'leave our own login in the environment of the command' },
  ],
  examples: [
    {
      command: "mayfly run -- psql -c 'select current_user'",
      about: 'with what the mayfly.yaml in this directory names',
    },
    {
      command: 'mayfly run --env PGPASSWORD=orders-db:password --env PGUSER=orders-db:username -- psql',
      about: 'two parts of one credential',
    },
    {
      command: 'mayfly run --file TOKEN_FILE=reports --ttl 5m --redact -- ./nightly.sh',
      about: 'in a file that is kept fresh, and never in the output',
    },
  ],
  json: 'one line on standard error when the command has ended: {credentials: [{id, backend, expires_at, revoked}], exit_code}',
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const wanted = await readWishes(context, options)
    const graceMs = await readGrace(options.grace)
    const file = await findCommand(command, { path: context.env['PATH'], cwd: context.cwd })
    if (typeof file === 'number') return tell(context, notFound(command, file), file)
    const { StartFailure, supervise } = await import('../run/supervise.ts')
    const wish = {
      wanted,
      command,
      file,
      args,
      env: withoutLogin(context.env, options.keepLogin === true),
      graceMs,
      isGuarded: options.guard === true,
    }
    const redaction = options.redact === true ? await newRedaction(context, options) : undefined
    try {
      return await supervise(context, { ...wish, redaction })
    } catch (error) {
      if (!(error instanceof StartFailure)) throw error
      return tell(context, error, error.shellCode)
    }
  },
})

const notFound = (command: string, code: number) =>
  code === NOT_FOUND
    ? usage(`${command}: there is no such command.`, 'Nothing was issued.')
    : usage(`${command}: it cannot be executed.`, 'Nothing was issued.')

/** As the frame tells a failure, with an exit code of the shells'. */
function tell({ out, stderr }: Context, { code, message, hint }: CliError, exitCode: number): number {
  if (out.isJson) stderr.write(`${JSON.stringify({ error: { code, message, hint } })}\n`)
  else out.note(oneLine(`mayfly: ${message} ${hint ?? ''}`.trim()))
  return exitCode
}

async function newRedaction({ env }: Context, { keepLogin }: Options): Promise<Redaction> {
  const { createRedaction } = await import('../run/redact.ts')
  const redaction = createRedaction()
  if (keepLogin === true)
    for (const name of ['MAYFLY_TOKEN', 'MAYFLY_CLIENT_SECRET']) redaction.add(env[name] ?? '')
  return redaction
}

const LONGEST_GRACE_MS = 3_600_000

async function readGrace(text: string): Promise<number> {
  const { parseBoundedDuration } = await import('../../config/values.ts')
  try {
    return parseBoundedDuration(text, 1, LONGEST_GRACE_MS)
  } catch (error) {
    throw usage(`--grace: ${error instanceof Error ? error.message : ''}.`, 'Such as --grace 20s.')
  }
}
