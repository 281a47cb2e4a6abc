import { resolve } from 'node:path'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError, EXIT, failureOf, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import type { LoginAuth } from '../identity/auth.ts'
import {
  checkProfileName,
  DEFAULT_PROFILE,
  newProfileName,
  type Profile,
  type Profiles,
  readProfiles,
} from './profiles.ts'
import { authOf, type KeptSecret, loadSecret, type OperatorSecret } from './secrets.ts'
import { DEFAULT_SERVER, isSameServer, type ServerAddress, serverOf } from './server-address.ts'

/** Where a setting comes from. */
export type Origin = 'flag' | 'environment' | 'profile' | 'default'

/** The server, the profile and the login to use. */
export interface Target {
  readonly server: ServerAddress
  readonly serverFrom: Origin
  /** The profile to use; it may not exist yet. */
  readonly profileName: string
  readonly profileFrom: Origin
  /** The entry of the profile, if it exists and is for this server. */
  readonly profile: Profile | undefined
  readonly caFile: string | undefined
  /** The first variable that holds a login, and whether this target uses that login. */
  readonly variable: { readonly name: string; readonly isUsed: boolean } | undefined
}

/**
 * Decides on the server, the profile and the login, in the order that docs/reference/cli.md states. A profile is used
 * only for the server it was made for, at the address that it was made with. Throws `CliError` (usage) for invalid
 * addresses and names.
 */
export async function readTarget(context: Context): Promise<Target> {
  const known = await readProfiles(context)
  const chosen = choose(context, known)
  const name = SECRET_VARIABLES.find((one) => givenOf(context.env[one]) !== undefined)
  if (name === undefined) return { ...chosen, variable: undefined }
  // A login from the environment is for the server of the environment: the one without flags. --profile names another.
  const { server, profile } = context.globals
  const ofEnvironment = server === undefined ? chosen : choose({ ...context, globals: {} }, known)
  const isUsed = profile === undefined && isSameServer(ofEnvironment.server.text, chosen.server.text)
  return { ...chosen, server: (isUsed ? ofEnvironment : chosen).server, variable: { name, isUsed } }
}

function choose(context: Context, known: Profiles): Omit<Target, 'variable'> {
  const { globals, env } = context
  const named = globals.profile ?? givenOf(env['MAYFLY_PROFILE'])
  const given = globals.server ?? givenOf(env['MAYFLY_SERVER'])
  const asked = given === undefined ? undefined : serverOf(given, env)
  const profileName = checkProfileName(named ?? profileFor(known, asked))
  const entry = known.profiles[profileName]
  const profile =
    asked === undefined || (entry !== undefined && isSameServer(entry.server, asked.text)) ? entry : undefined
  const serverFrom = globals.server !== undefined ? 'flag' : given !== undefined ? 'environment' : undefined
  return {
    server:
      asked !== undefined && profile === undefined ? asked : serverOf(entry?.server ?? DEFAULT_SERVER, env),
    serverFrom: serverFrom ?? (entry === undefined ? 'default' : 'profile'),
    profileName,
    profileFrom: globals.profile !== undefined ? 'flag' : named !== undefined ? 'environment' : 'default',
    profile,
    caFile: caFileOf(context, profile),
  }
}

/** The profile for this server, or a new name, so that a login overwrites no other. */
export function profileFor(known: Profiles, asked: ServerAddress | undefined): string {
  const usual = known.current ?? DEFAULT_PROFILE
  const holder = known.profiles[usual]
  if (asked === undefined || holder === undefined || holder.server === asked.text) return usual
  const all = Object.entries(known.profiles)
  const exact = all.find(([, one]) => one.server === asked.text)
  if (exact !== undefined) return exact[0]
  if (isSameServer(holder.server, asked.text)) return usual
  return all.find(([, one]) => isSameServer(one.server, asked.text))?.[0] ?? newProfileName(asked.text, known)
}

function caFileOf({ globals, env, cwd }: Context, profile: Profile | undefined): string | undefined {
  const given = globals.ca ?? givenOf(env['MAYFLY_CA_FILE'])
  return given === undefined ? profile?.ca_file : resolve(cwd, given)
}

/** An empty variable counts as unset, as in most shells and CI systems. */
export function givenOf(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text
}

/** How the agent authenticates, and where that comes from. */
export interface Login {
  readonly auth: LoginAuth
  /** `identity`: nothing is stored; a source of tokens says who it is. */
  readonly from: 'environment' | 'keychain' | 'file' | 'identity'
}

/** What a person calls each of them. */
export const LOGIN_WORDS: Readonly<Record<LoginAuth['kind'], string>> = {
  bearer: 'token',
  client_secret: 'client secret',
  private_key_jwt: 'enrolled key',
  identity: 'identity',
  none: 'none',
}

/** The variables that hold a login with a secret. */
const SECRET_VARIABLES = [
  'MAYFLY_TOKEN',
  'MAYFLY_TOKEN_FILE',
  'MAYFLY_CLIENT_ID',
  'MAYFLY_CLIENT_SECRET',
  'MAYFLY_CLIENT_SECRET_FILE',
] as const

/** The variables of ours that let their holder log in. */
export const LOGIN_VARIABLES = [...SECRET_VARIABLES, 'MAYFLY_ID_TOKEN', 'MAYFLY_IDENTITY_TOKEN_FILE'] as const

/**
 * The login of an agent: from the environment, if the target uses that, else the one of the profile; undefined if there is
 * none. Throws `CliError` for the token of an operator.
 */
export async function findAgentLogin(context: Context, target: Target): Promise<Login | undefined> {
  if (target.variable?.isUsed !== true) return findStoredLogin(context, target)
  const login = await environmentLogin(context)
  if (isOperators(login)) throw ofOperator(target.variable.name)
  return login
}

/** As `findAgentLogin`, for verbs of administration: the token of an operator will do. */
export async function findAdminLogin(context: Context, target: Target): Promise<Login | undefined> {
  return target.variable?.isUsed === true ? environmentLogin(context) : findStoredLogin(context, target)
}

/** The form of an operator's token. */
export const OPERATOR_TOKEN = /^mop_[0-9a-f]{64}$/

/** Whether it is the token of an operator, or was meant to be. */
export const isOperators = ({ auth }: Login): boolean =>
  auth.kind === 'bearer' && auth.token.startsWith('mop_')

function ofOperator(variable: string): CliError {
  return new CliError(
    'operator_token',
    `${variable} holds the token of an operator (mop_…), which administers and never gets credentials.`,
    {
      exit: EXIT.unauthenticated,
      hint: 'Set it to the token of an agent (ckr_…), or unset it and run `mayfly login` or `mayfly enroll`.',
    },
  )
}

/** The token of the operator's login of the profile; undefined if there is none. */
export async function findStoredOperator(
  context: Context,
  { profile, profileName }: Target,
): Promise<string | undefined> {
  if (profile?.operator === undefined) return undefined
  const { secret_in } = profile.operator
  const secret = await loadSecret<OperatorSecret>(context, `${profileName}/operator`, secret_in)
  return secret?.server === profile.server ? secret.token : undefined
}

/** MAYFLY_TOKEN, else MAYFLY_CLIENT_ID with MAYFLY_CLIENT_SECRET. */
async function environmentLogin(context: Context): Promise<Login> {
  const token = await variable(context, 'MAYFLY_TOKEN')
  if (token !== undefined) return { auth: { kind: 'bearer', token }, from: 'environment' }
  const clientId = givenOf(context.env['MAYFLY_CLIENT_ID'])
  const clientSecret = await variable(context, 'MAYFLY_CLIENT_SECRET')
  if (clientId === undefined || clientSecret === undefined)
    throw usage('MAYFLY_CLIENT_ID and MAYFLY_CLIENT_SECRET must be set together.', 'Set both, or neither.')
  return { auth: { kind: 'client_secret', clientId, clientSecret }, from: 'environment' }
}

/** The login of the profile, whatever the environment holds. */
export async function findStoredLogin(
  context: Context,
  { profile, profileName }: Target,
): Promise<Login | undefined> {
  if (profile?.secret_in === undefined) return undefined
  const secret = await loadSecret<KeptSecret>(context, `${profileName}/login`, profile.secret_in)
  // A secret goes only to the server it was stored for, even if the profile has changed.
  if (secret?.server !== profile.server) return undefined
  return { auth: authOf(secret, profile.issuer), from: profile.secret_in }
}

/** The error of a command that needs a login. */
export function notLoggedIn(target: Target): CliError {
  const { server, profileName, profileFrom } = target
  const which = profileFrom === 'default' ? '' : ` with profile ${profileName}`
  return new CliError('not_logged_in', `You are not logged in to ${server.text}${which}.`, {
    exit: EXIT.unauthenticated,
    hint: hintFor(target),
  })
}

function hintFor({ server, profileFrom, variable }: Target): string {
  if (variable === undefined) return 'Run `mayfly enroll` or `mayfly login`, or set MAYFLY_TOKEN.'
  if (profileFrom === 'flag')
    return `${variable.name} is not used with --profile: leave it out, or run \`mayfly login\`.`
  return `${variable.name} is used only for the server of the environment: set MAYFLY_SERVER=${shellWord(server.text)}, or run \`mayfly login\`.`
}

/** The value of `NAME`, or the content of the file that `NAME_FILE` names. */
async function variable({ env, cwd }: Context, name: string): Promise<string | undefined> {
  const value = givenOf(env[name])
  const file = givenOf(env[`${name}_FILE`])
  if (value !== undefined && file !== undefined)
    throw usage(`${name} and ${name}_FILE are both set.`, 'Set one of them.')
  if (file === undefined) return value
  // By getBuiltinModule: an import would load a dozen modules of Node for commands that read no such file.
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  const text = (await readFile(resolve(cwd, file), 'utf8').catch((cause) => cannotRead(name, cause))).trim()
  if (text === '') throw usage(`The file that ${name}_FILE names is empty.`, 'Write the secret into it.')
  return text
}

/** Most often a secret that is not mounted. */
function cannotRead(name: string, cause: unknown): never {
  throw new CliError(
    'login_not_read',
    `Cannot read the file that ${name}_FILE names: ${failureOf(cause).message}`,
    {
      exit: EXIT.unauthenticated,
      hint: `Put the secret there, or unset ${name}_FILE.`,
      cause,
    },
  )
}
