import { CliError, EXIT, failureOf, usage } from '../frame/failure.ts'
import { flag, text, type ValuesOf } from '../frame/options.ts'
import { askSecret, readSecretFile } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { keepLogin, noteOtherLogin } from '../session/keep-login.ts'
import type { MovedLogin } from '../session/move-login.ts'
import { askServerKeys, clientFor } from '../session/open.ts'
import { authOf, type StoredSecret } from '../session/secrets.ts'
import { readTarget } from '../session/session.ts'

const OPTIONS = {
  tokenFile: text('<file>', 'file with the token; - reads standard input'),
  clientId: text('<id>', 'client id (agent_…), to log in with a client secret'),
  clientSecretFile: text('<file>', 'file with the client secret; - reads standard input'),
  move: flag('keep the login of this profile, whose server is now at the address of --server'),
  issuer: text('<url>', 'with --move: what the server calls itself, if that is not its address'),
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    'Logs in with a token (ckr_…) or a client id and secret from an administrator. ' +
    'It asks for them without echo, or reads a file or standard input, and stores them only if they work.',
  options: OPTIONS,
  examples: {
    'mayfly login --server https://mayfly.example.com': 'ask for the token',
    'mayfly login --token-file /run/secrets/mayfly': 'read it from a file',
    'mayfly login --client-id agent_01… --client-secret-file - <secret.txt':
      'client id and secret; the secret comes from standard input',
    'mayfly login --move --server https://new.example.com': 'the server has moved',
  },
  json: '{server, profile, agent: {id, name}, login, kept_in: keychain or file, place}',
  exits: [3, 4],
  run: async (context, options) => {
    if (options.move === true) return move(context, options)
    if (options.issuer !== undefined) throw usage('--issuer needs --move.')
    const target = await readTarget(context)
    const secret = await readSecret(context, options)
    // A new login takes the server as it is now.
    const client = await clientFor(context, { ...target, profile: undefined }, authOf(secret))
    const { id, name } = await client.status().catch(refused)
    const agent = { id, name }
    const serverKeys = await askServerKeys(context, target)
    const kept = await keepLogin(context, { target, secret, agent, serverKeys })
    const words = `Logged in to ${target.server.text} as ${name}. The login is stored in ${kept.title}.`
    await report(context, { target, kept, agent, login: secret.kind }, words)
  },
})

async function move(context: Context, { issuer, tokenFile, clientId }: Options): Promise<void> {
  if (tokenFile !== undefined || clientId !== undefined)
    throw usage('--move takes the login that is stored, so it excludes --token-file and --client-id.')
  const { moveLogin } = await import('../session/move-login.ts')
  const moved = await moveLogin(context, issuer).catch(refused)
  await report(context, moved, `The login of ${moved.agent.name} is now for ${moved.target.server.text}.`)
}

async function report(
  context: Context,
  { target, kept, agent, login }: MovedLogin,
  words: string,
): Promise<void> {
  const { profileName: profile, place: kept_in, title: place } = kept
  await context.out.report({ server: target.server.text, profile, agent, login, kept_in, place }, words)
  await noteOtherLogin(context, target, kept)
}

/** The hint of other commands would be to log in. */
function refused(error: unknown): never {
  const { code, message, exitCode } = failureOf(error)
  if (exitCode !== EXIT.unauthenticated) throw error
  throw new CliError(code, message, {
    exit: EXIT.unauthenticated,
    hint: 'Check that you copied all of the secret, and that the agent still exists.',
    cause: error,
  })
}

async function readSecret(context: Context, options: Options): Promise<StoredSecret> {
  const { tokenFile, clientId, clientSecretFile } = options
  if (clientId === undefined) {
    if (clientSecretFile !== undefined) throw usage('--client-secret-file needs --client-id.')
    const token = await take(context, tokenFile, 'Token: ', '--token-file')
    if (!/^ckr_[0-9a-f]{48}$/.test(token)) throw notOurs('token', 'ckr_ and 48 hexadecimal digits')
    return { kind: 'bearer', token }
  }
  if (tokenFile !== undefined) throw usage('--token-file and --client-id exclude each other.')
  const clientSecret = await take(context, clientSecretFile, 'Client secret: ', '--client-secret-file')
  if (!/^cks_[0-9a-f]{64}$/.test(clientSecret))
    throw notOurs('client secret', 'cks_ and 64 hexadecimal digits')
  return { kind: 'client_secret', client_id: clientId, client_secret: clientSecret }
}

/** Reads the file, or standard input, or asks. */
async function take(
  context: Context,
  file: string | undefined,
  question: string,
  flag: string,
): Promise<string> {
  if (file !== undefined || context.stdin.isTTY !== true)
    return (await readSecretFile(context, file ?? '-')).trim()
  return askSecret(context, question, { otherwise: `Use ${flag}.` })
}

function notOurs(what: string, form: string): CliError {
  return usage(`This is not a Mayfly ${what}.`, `A ${what} is ${form}. Copy all of it.`)
}
