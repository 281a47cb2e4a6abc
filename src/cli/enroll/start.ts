import { MayflyError } from '../../client/errors.ts'
import { CliError } from '../frame/failure.ts'
import { plain } from '../frame/output.ts'
import { ask } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import { clientFor } from '../session/open.ts'
import type { Profile } from '../session/profiles.ts'
import { findLogin, LOGIN_VARIABLES, type Login, readTarget, type Target } from '../session/session.ts'
import { loadUnderway, newKey, removeUnderway, saveUnderway, type Underway, type Wish } from './underway.ts'

/** The target; where no server is named it is that of the enrollment which is under way. */
export async function findTarget(context: Context): Promise<Target> {
  const target = await readTarget(context)
  if (target.serverFrom !== 'default') return target
  const underway = await loadUnderway(context, target.profileName)
  if (underway === undefined) return target
  const { server, ca_file: ca = context.globals.ca } = underway
  const globals = {
    ...context.globals,
    server,
    profile: target.profileName,
    ...(ca === undefined ? {} : { ca }),
  }
  return readTarget({ ...context, globals })
}

export interface Present {
  readonly agent: { readonly id: string; readonly name: string }
  readonly scopes: readonly string[]
  readonly login: Login
  readonly place: Profile['secret_in']
}

/**
 * The agent whose login this profile has, if it is alive. Logins from the environment do not count: they are not
 * kept. Throws `CliError` when it is another one than is wanted.
 */
export async function findPresent(
  context: Context,
  target: Target,
  name: string | undefined,
): Promise<Present | undefined> {
  const login = await findLogin(withoutLogin(context), target)
  if (login === undefined) return undefined
  try {
    const status = await (await clientFor(context, target, login.auth)).status()
    const agent = { id: status.id, name: status.name }
    if (name === undefined || name.toLowerCase() === agent.name.toLowerCase())
      return { agent, scopes: status.scopes, login, place: target.profile?.secret_in ?? 'file' }
    throw new CliError(
      'profile_in_use',
      `The profile ${target.profileName} is the login of ${plain(agent.name)} already.`,
      { hint: 'Name another with --profile, or run `mayfly logout` first.' },
    )
  } catch (error) {
    // An agent that has ended: its login is good for nothing, and a new one takes its place.
    if (error instanceof MayflyError && (error.status === 401 || error.code === 'invalid_client'))
      return undefined
    throw error
  }
}

function withoutLogin(context: Context): Context {
  const none = Object.fromEntries(LOGIN_VARIABLES.map((name) => [name, undefined]))
  return { ...context, env: { ...context.env, ...none } }
}

/** What is left of an enrollment that ended between the keeping of its login and the forgetting of itself. */
export async function dropOwn(context: Context, profileName: string, { login }: Present): Promise<void> {
  const underway = await loadUnderway(context, profileName)
  if (login.auth.kind === 'private_key_jwt' && login.auth.privateJwk.x === underway?.private_jwk.x)
    await removeUnderway(context, profileName)
}

/** What is asked for on the command line: undefined for what was left out. */
interface Asked {
  readonly name: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/**
 * What is under way, or a new one, which is kept before anything of it is sent. Throws `CliError` where another one
 * is under way.
 */
export async function begin(context: Context, target: Target, asked: Asked): Promise<Underway> {
  const { profileName, server, caFile } = target
  const known = await loadUnderway(context, profileName)
  if (known !== undefined && known.server === server.text && isSame(known.wish, asked)) return known
  // One that was never answered may be replaced: what may have come of it ends by itself.
  if (known?.enrollment !== undefined) throw isInTheWay(known, target)
  const wish: Wish = {
    name: asked.name ?? (await ask(context, 'Name of the agent: ', { otherwise: 'Give it with --name.' })),
    ...(asked.scopes === undefined ? {} : { scopes: asked.scopes }),
    ...(asked.metadata === undefined ? {} : { metadata: asked.metadata }),
  }
  const ca = caFile === undefined ? {} : { ca_file: caFile }
  const underway = { server: server.text, ...ca, wish, ...(await newKey()) }
  await saveUnderway(context, profileName, underway)
  return underway
}

function isSame(wish: Wish, { name, scopes, metadata }: Asked): boolean {
  return (
    (name ?? wish.name) === wish.name &&
    (scopes === undefined || isEqual(scopes, wish.scopes)) &&
    (metadata === undefined || isEqual(metadata, wish.metadata))
  )
}

const isEqual = (one: object, other: object | undefined) => JSON.stringify(one) === JSON.stringify(other)

function isInTheWay({ server, wish }: Underway, target: Target): CliError {
  const isHere = server === target.server.text
  const at = isHere ? '' : ` at ${server}`
  return new CliError('enrollment_differs', `The enrollment of ${plain(wish.name)}${at} is under way.`, {
    hint: `Go on with it by \`mayfly enroll${isHere ? '' : ` --server ${server}`}\`, drop it with --restart, or name another --profile.`,
  })
}
