import { CliError, EXIT, failureOf, usage } from '../frame/failure.ts'
import { flag, text, type ValuesOf } from '../frame/options.ts'
import { ask, askSecret, readSecretFile } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import type { Wish } from '../person/log-in.ts'
import { keepLogin, noteOtherLogin } from '../session/keep-login.ts'
import type { MovedLogin } from '../session/move-login.ts'
import { askServerKeys, clientFor } from '../session/open.ts'
import { nameOf, type OperatorMethod } from '../session/profiles.ts'
import { authOf, type StoredSecret } from '../session/secrets.ts'
import { OPERATOR_TOKEN, readTarget, type Target } from '../session/session.ts'

const OPTIONS = {
  browser: flag('log in as yourself, with a browser on this machine'),
  device: flag('log in as yourself, with a browser on another machine, where you type a code'),
  tokenFile: text('<file>', 'file with the token; - reads standard input'),
  clientId: text('<id>', 'client id (agent_…), to log in with a client secret'),
  clientSecretFile: text('<file>', 'file with the client secret; - reads standard input'),
  identity: text(
    '<source>',
    'log in as the job or machine that this is: auto, github, gitlab, forgejo, kubernetes, spiffe, aws, gcp, azure or file:PATH',
    { values: 'identities' },
  ),
  audience: text(
    '<audience>',
    'with --identity: whom its token is for; by default the address of the server',
  ),
  move: flag('keep the login of this profile, whose server is now at the address of --server'),
  issuer: text(
    '<url>',
    'with --move, --browser and --device: what the server calls itself, if that is not its address',
  ),
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    'Logs in as an agent, with a token (ckr_…) or a client id and secret from an administrator: it asks for them without ' +
    'echo, or reads a file or standard input, and stores them only if they work. With --browser or --device it logs in a ' +
    'person, an operator: the commands of administrators then act as you, for at most 12 hours. Both logins are kept side ' +
    'by side. With --identity it shows the server a token that a CI system, a cluster or a cloud signs, and stores no ' +
    'secret: only an access token, for the commands of this job. At a terminal, without a login and an option, it asks which.',
  options: OPTIONS,
  examples: {
    'mayfly login --server https://mayfly.example.com': 'ask how, and for the token of an agent',
    'mayfly login --browser': 'administer as yourself',
    'mayfly login --device': 'the same, where there is no browser: over SSH, for example',
    'mayfly login --token-file /run/secrets/mayfly': 'read it from a file',
    'mayfly login --client-id agent_01… --client-secret-file - <secret.txt':
      'client id and secret; the secret comes from standard input',
    'mayfly login --identity auto': 'as the CI job, pod or machine that this is',
    'mayfly login --move --server https://new.example.com': 'the server has moved',
  },
  json: '{server, profile, agent: {id, name}, login, kept_in: keychain or file, place}; of a person {server, profile, operator: {id, email (optional), name}, login: browser or device, expires_at, kept_in, place}; by an identity {server, agent, login: identity, identity: {source, audience}, expires_at, place (null: not kept)}',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const named = methodOf(options)
    if (options.identity !== undefined) return logInByIdentity(context, options, options.identity)
    if (options.audience !== undefined) throw usage('--audience needs --identity.')
    if (options.move === true) return move(context, options)
    if (options.issuer !== undefined && named === undefined)
      throw usage('--issuer needs --move, --browser or --device.')
    const target = await readTarget(context)
    const method = named ?? (await choose(context, options, target))
    if (method !== 'token') return logInPerson(context, target, { method, issuer: options.issuer })
    const secret = await readSecret(context, options)
    // A new login takes the server as it is now.
    const client = await clientFor(context, { ...target, profile: undefined }, authOf(secret))
    const { id, name } = await client.status().catch(refused)
    const agent = { id, name }
    const serverKeys = await askServerKeys(context, target)
    const kept = await keepLogin(context, { target, secret, agent, serverKeys })
    const words = `Logged in to ${target.server.text} as ${name}. The login is stored in ${kept.title}.`
    await report(context, { target, kept, agent, login: secret.kind, operator: undefined }, words)
  },
})

function methodOf({ browser, device, ...others }: Options): OperatorMethod | undefined {
  if (browser !== true && device !== true) return undefined
  const { tokenFile, clientId, clientSecretFile, move } = others
  const isOther = [tokenFile, clientId, clientSecretFile, move].some((one) => one !== undefined)
  if (isOther || (browser === true && device === true))
    throw usage('--browser and --device exclude each other, and the options of other logins.')
  return browser === true ? 'browser' : 'device'
}

const CHOICES: Readonly<Record<string, OperatorMethod | 'token'>> = {
  1: 'token',
  2: 'browser',
  3: 'device',
}

/** Asks a person who has said nothing else, and has no login of an agent that another one would replace. */
async function choose(
  context: Context,
  { tokenFile, clientId, clientSecretFile }: Options,
  target: Target,
): Promise<OperatorMethod | 'token'> {
  const isSaid = [tokenFile, clientId, clientSecretFile].some((one) => one !== undefined)
  if (isSaid || context.stdin.isTTY !== true || target.profile?.login !== undefined) return 'token'
  const { isOffered } = await import('../person/offer.ts')
  if (!(await isOffered(context, target))) return 'token'
  context.out.note(
    [
      `Log in to ${target.server.text} as`,
      '  1  an agent, with a token',
      '  2  yourself, with a browser on this machine',
      '  3  yourself, with a browser on another machine',
    ].join('\n'),
  )
  const answer = await ask(context, '1, 2 or 3: ')
  const chosen = Object.hasOwn(CHOICES, answer) ? CHOICES[answer] : undefined
  if (chosen === undefined) throw usage('That is none of 1, 2 and 3.')
  return chosen
}

/** Nothing of it is in a profile. */
async function logInByIdentity(context: Context, options: Options, identity: string): Promise<void> {
  const { audience, identity: _, ...others } = options
  if (Object.values(others).some((one) => one !== undefined))
    throw usage('--identity excludes the options of other logins.')
  const { logInAs, noteOtherLogin: noteOther } = await import('../identity/chosen.ts')
  const target = await readTarget(context)
  const { auth, agent, expires, isKept } = await logInAs(context, target, { identity, audience })
  const { source } = auth
  const server = target.server.text
  const place = isKept ? auth.file : null
  const ends = expires === undefined ? '' : `, until ${relative(expires, context.now())}`
  await context.out.report(
    {
      server,
      agent,
      login: auth.kind,
      identity: { source, audience: auth.audience },
      expires_at: expires,
      place,
    },
    `Logged in to ${server} as ${agent.name}, by ${auth.title}. ${place === null ? 'It cannot be kept here, so each command logs in by itself.' : `The access token is in ${place}${ends}.`}`,
  )
  await noteOther(context, target)
}

async function logInPerson(context: Context, target: Target, wish: Wish): Promise<void> {
  const { logInAndKeep } = await import('../person/log-in.ts')
  const { login, kept } = await logInAndKeep(context, target, wish)
  const { id, email, name, method, expires } = login.operator
  const value = {
    server: target.server.text,
    profile: kept.profileName,
    operator: { id, email, name },
    login: method,
    expires_at: expires,
    kept_in: kept.place,
    place: kept.title,
  }
  await context.out.report(
    value,
    `Logged in to ${target.server.text} as ${nameOf(login.operator)}, an operator. The login ends ${relative(expires, context.now())}, and is stored in ${kept.title}.`,
  )
  await noteOtherLogin(context, target, kept)
}

async function move(context: Context, { issuer, tokenFile, clientId }: Options): Promise<void> {
  if (tokenFile !== undefined || clientId !== undefined)
    throw usage('--move takes the login that is stored, so it excludes --token-file and --client-id.')
  const { moveLogin } = await import('../session/move-login.ts')
  const moved = await moveLogin(context, issuer).catch(refused)
  const who = [moved.agent?.name, moved.operator && nameOf(moved.operator)].filter(Boolean).join(' and ')
  await report(context, moved, `The login of ${who} is now for ${moved.target.server.text}.`)
}

async function report(
  context: Context,
  { target, kept, agent, login, operator: person }: MovedLogin,
  words: string,
): Promise<void> {
  const { profileName: profile, place: kept_in, title: place } = kept
  const operator = person && { id: person.id, email: person.email, name: person.name }
  await context.out.report(
    { server: target.server.text, profile, agent, login, operator, kept_in, place },
    words,
  )
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
    if (OPERATOR_TOKEN.test(token)) throw operatorsToken()
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

/** The command gets and keeps such a token itself, with what it knows of the person. */
function operatorsToken(): CliError {
  return usage(
    'This is the token of an operator (mop_…), which nobody but the login that got it can use.',
    'To administer as yourself, run `mayfly login --browser` or `mayfly login --device`. The token of an agent begins with ckr_.',
  )
}

function notOurs(what: string, form: string): CliError {
  return usage(`This is not a Mayfly ${what}.`, `A ${what} is ${form}. Copy all of it.`)
}
