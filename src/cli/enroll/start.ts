import { MayflyError } from '../../client/errors.ts'
import { CliError } from '../frame/failure.ts'
import { ask } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import { tryLock } from '../session/file-lock.ts'
import { clientFor } from '../session/open.ts'
import { configPath } from '../session/paths.ts'
import type { Profile } from '../session/profiles.ts'
import { isSameServer } from '../session/server-address.ts'
import { findStoredLogin, type Login, readTarget, type Target } from '../session/session.ts'
import {
  type AgentRequest,
  loadUnderway,
  newKey,
  removeUnderway,
  saveUnderway,
  type Underway,
} from './underway.ts'

/** The target; for an enrollment under way, with its server if none is named, and the authorities to trust. */
export async function findTarget(context: Context): Promise<Target> {
  const target = await readTarget(context)
  if (target.serverFrom !== 'default' && target.profile !== undefined) return target
  const underway = await loadUnderway(context, target.profileName)
  if (underway === undefined) return target
  if (target.serverFrom !== 'default' && !isSameServer(underway.server, target.server.text)) return target
  const { server, ca_file: known } = underway
  const { ca = known, ...others } = context.globals
  const globals = { ...others, ca, server, profile: target.profileName }
  return readTarget({ ...context, globals })
}

export interface Present {
  readonly agent: { readonly id: string; readonly name: string }
  readonly scopes: readonly string[]
  readonly login: Login
  readonly place: Profile['secret_in']
}

/**
 * The agent that this profile is logged in as, if it is active. Logins from the environment do not count, as they are
 * not stored. Throws `CliError` if it is not the requested agent.
 */
export async function findPresent(
  context: Context,
  target: Target,
  name: string | undefined,
): Promise<Present | undefined> {
  const login = await findStoredLogin(context, target)
  if (login === undefined) return undefined
  try {
    // The caller remembers the keys of the server as it is now.
    const client = await clientFor(context, target, login.auth, { isWatched: false })
    const status = await client.status()
    const agent = { id: status.id, name: status.name }
    if (name === undefined || isNamed(agent.name, name))
      return { agent, scopes: status.scopes, login, place: target.profile?.secret_in ?? 'file' }
    throw new CliError(
      'profile_in_use',
      `The profile ${target.profileName} is already logged in as ${agent.name}.`,
      { hint: 'Choose another with --profile, or run `mayfly logout` first.' },
    )
  } catch (error) {
    // The agent has ended: a new login replaces the useless one.
    if (error instanceof MayflyError && (error.status === 401 || error.code === 'invalid_client'))
      return undefined
    throw error
  }
}

/** Whether an agent that asked for this name has this one: a policy may have added a suffix. */
function isNamed(actual: string, asked: string): boolean {
  const [one, other] = [actual.toLowerCase(), asked.toLowerCase()]
  return one === other || (one.startsWith(`${other}-`) && /^[0-9a-z]{8}$/.test(one.slice(other.length + 1)))
}

/** Removes the record of an enrollment that was interrupted after its login was stored. */
export async function dropOwn(context: Context, profileName: string, { login }: Present): Promise<void> {
  const underway = await loadUnderway(context, profileName)
  if (login.auth.kind === 'private_key_jwt' && login.auth.privateJwk.x === underway?.private_jwk.x)
    await removeUnderway(context, profileName)
}

/** The request on the command line; undefined for omitted options. */
interface Asked {
  readonly name: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/**
 * The enrollment under way, or a new one, stored before anything is sent. Throws `CliError` if a different one is under
 * way.
 */
export async function begin(context: Context, target: Target, asked: Asked): Promise<Underway> {
  const { profileName, server, caFile } = target
  const known = await loadUnderway(context, profileName)
  if (known !== undefined && isSameServer(known.server, server.text) && isSame(known.request, asked))
    return known
  // One that the server never answered may be replaced: if it arrived, it expires on its own.
  if (known?.enrollment !== undefined) throw isInTheWay(known, target)
  const { scopes, metadata } = asked
  const name = asked.name ?? (await ask(context, 'Name of the agent: ', { otherwise: 'Set it with --name.' }))
  const request: AgentRequest = { name, scopes, metadata }
  const underway = { server: server.text, ca_file: caFile, request, ...(await newKey()) }
  await saveUnderway(context, profileName, underway)
  return underway
}

function isSame(request: AgentRequest, { name, scopes, metadata }: Asked): boolean {
  return (
    (name ?? request.name) === request.name &&
    (scopes === undefined || isEqual(scopes, request.scopes)) &&
    (metadata === undefined || isEqual(metadata, request.metadata))
  )
}

const isEqual = (one: object, other: object | undefined) => JSON.stringify(one) === JSON.stringify(other)

function isInTheWay({ server, request }: Underway, target: Target): CliError {
  const isHere = isSameServer(server, target.server.text)
  const at = isHere ? '' : ` at ${server}`
  return new CliError('enrollment_differs', `The enrollment of ${request.name}${at} is under way.`, {
    hint: `Continue it with \`mayfly enroll${isHere ? '' : ` --server ${server}`}\`, drop it with --restart, or choose another --profile.`,
  })
}

const SQLITE_FULL = 13

/** Only one process at a time enrolls for a profile. Throws `CliError` if another one holds the lock. */
export async function lockEnrollment(context: Context, profileName: string): Promise<() => void> {
  const path = configPath(context, 'secrets', `${profileName}.enrollment.lock`)
  const release = await tryLock(path).catch((error: unknown) => {
    if ((error as { errcode?: unknown }).errcode !== SQLITE_FULL) throw error
    throw new CliError('not_written', `${path} cannot be written: the disk is full.`, {
      hint: 'Nothing was changed.',
    })
  })
  if (release !== undefined) return release
  throw new CliError(
    'enrollment_waits',
    `Another \`mayfly enroll\` is running for the profile ${profileName}.`,
    { hint: 'Let it finish or stop it first. For another agent, choose another --profile.' },
  )
}
