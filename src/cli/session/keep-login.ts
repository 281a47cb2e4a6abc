import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { changeAlone } from './file-lock.ts'
import {
  type KeptOperator,
  type Profile,
  type Profiles,
  profilesPath,
  readProfiles,
  writeProfiles,
} from './profiles.ts'
import {
  type KeptAt,
  type KeptSecret,
  loadSecret,
  type OperatorSecret,
  removeSecret,
  type StoredSecret,
  saveSecret,
} from './secrets.ts'
import { isSameServer } from './server-address.ts'
import { profileFor, readTarget, type Target } from './session.ts'

export interface NewLogin {
  readonly target: Target
  readonly secret: StoredSecret
  readonly agent?: { readonly id: string; readonly name: string } | undefined
  readonly issuer?: string | undefined
  readonly serverKeys: readonly string[]
}

export interface NewOperatorLogin {
  readonly target: Target
  readonly token: string
  readonly operator: Omit<KeptOperator, 'secret_in'>
  readonly serverKeys: readonly string[]
}

/** Where a login is stored, and under which name. */
export type KeptLogin = KeptAt & { readonly profileName: string }

/**
 * Stores an agent's login as the profile of the target; it becomes current if none is. An operator's login at the same
 * server stays beside it. If it throws, the old login is unchanged.
 */
export function keepLogin(context: Context, login: NewLogin): Promise<KeptLogin> {
  const { target, secret, agent, issuer, serverKeys } = login
  const server = target.server.text
  const value: KeptSecret = { ...secret, server }
  return alone(context, () =>
    keep(context, target, 'login', value, (before, place) => ({
      server,
      login: secret.kind,
      secret_in: place,
      issuer,
      agent,
      client_id: secret.kind === 'bearer' ? undefined : secret.client_id,
      ca_file: target.caFile,
      operator: before?.operator,
      server_keys: serverKeys.length === 0 ? undefined : serverKeys,
    })),
  )
}

/** Stores an operator's login beside the agent's. Throws `CliError` if the profile has an agent's login at another server. */
export function keepOperator(context: Context, login: NewOperatorLogin): Promise<KeptLogin> {
  const { target, token, operator, serverKeys } = login
  const server = target.server.text
  const value: OperatorSecret = { kind: 'operator', token, expires: operator.expires, server }
  return alone(context, async () => {
    checkFree(await readProfiles(context), target)
    return keep(context, target, 'operator', value, (before, place) => ({
      ...before,
      server,
      ca_file: target.caFile,
      operator: { ...operator, secret_in: place },
      server_keys: serverKeys.length === 0 ? undefined : serverKeys,
    }))
  })
}

/** An enrolled key cannot be had again, so a person's login does not replace it. Throws `CliError`. */
export function checkFree(known: Profiles, target: Target): void {
  const profileName = nameFor(known, target)
  const holder = known.profiles[profileName]
  if (holder?.login === undefined || holder.server === target.server.text) return
  throw new CliError(
    'profile_in_use',
    `The profile ${profileName} has the login of an agent at ${holder.server}.`,
    { hint: 'Choose another with --profile.' },
  )
}

/** A login at another server may have taken the name since. */
const nameFor = (known: Profiles, { profileFrom, profileName, server }: Target) =>
  profileFrom === 'default' ? profileFor(known, server) : profileName

type Role = 'login' | 'operator'

/** `profileOf` gets the profile of before if it is for the same server: a secret is good at one. */
async function keep(
  context: Context,
  target: Target,
  role: Role,
  secret: KeptSecret | OperatorSecret,
  profileOf: (before: Profile | undefined, place: KeptAt['place']) => Profile,
): Promise<KeptLogin> {
  const known = await readProfiles(context)
  const profileName = nameFor(known, target)
  const before = known.profiles[profileName]
  const old = await oldSecret(context, profileName, role, before)
  const kept = await saveSecret(context, `${profileName}/${role}`, secret)
  const profile = profileOf(before?.server === target.server.text ? before : undefined, kept.place)
  try {
    await writeProfiles(context, {
      current: known.current ?? profileName,
      profiles: { ...known.profiles, [profileName]: profile },
    })
  } catch (error) {
    await (old === undefined
      ? removeSecret(context, `${profileName}/${role}`, kept.place)
      : saveSecret(context, `${profileName}/${role}`, old)
    ).catch(() => {})
    throw error
  }
  for (const one of ['login', 'operator'] as const) {
    const place = placeOf(before, one)
    if (place !== undefined && place !== placeOf(profile, one))
      await removeSecret(context, `${profileName}/${one}`, place).catch(() => {})
  }
  return { ...kept, profileName }
}

const placeOf = (profile: Profile | undefined, role: Role) =>
  role === 'login' ? profile?.secret_in : profile?.operator?.secret_in

/** Says after a login that commands without flags use another one: of the environment, or of another profile. */
export async function noteOtherLogin(
  context: Context,
  { server }: Target,
  { profileName }: KeptLogin,
): Promise<void> {
  const next = await readTarget({ ...context, globals: {} })
  if (next.variable?.isUsed === true && isSameServer(next.server.text, server.text))
    context.out.note(`${next.variable.name} is set and takes precedence over this login. Unset it.`)
  else if (next.profileName !== profileName)
    context.out.note(`Other commands use it with: --profile ${profileName}`)
}

/** All profiles are in one file, which only one process at a time may read and change. */
const alone = <T>(context: Context, change: () => Promise<T>) =>
  changeAlone({ file: profilesPath(context) }, context.signal, change)

/** The secret to restore if the new one cannot be stored; undefined if it cannot be read. */
async function oldSecret(
  context: Context,
  profileName: string,
  role: Role,
  before: Profile | undefined,
): Promise<object | undefined> {
  const place = placeOf(before, role)
  if (place === undefined) return undefined
  return loadSecret<KeptSecret>(context, `${profileName}/${role}`, place).catch(() => undefined)
}

/** Removes the secrets, then the profile. False if there was none. */
export function forgetLogin(context: Context, profileName: string): Promise<boolean> {
  return alone(context, async () => {
    const known = await readProfiles(context)
    const profile = known.profiles[profileName]
    if (profile === undefined) return false
    for (const role of ['login', 'operator'] as const) await forgetSecret(context, profileName, profile, role)
    await writeWithout(context, known, profileName)
    return true
  })
}

/** Removes the operator's login, and the profile if it has no other. */
export function forgetOperator(context: Context, profileName: string): Promise<void> {
  return alone(context, async () => {
    const known = await readProfiles(context)
    const profile = known.profiles[profileName]
    if (profile?.operator === undefined) return
    await forgetSecret(context, profileName, profile, 'operator')
    const { operator: _, ...others } = profile
    if (others.login === undefined) return writeWithout(context, known, profileName)
    await writeProfiles(context, { ...known, profiles: { ...known.profiles, [profileName]: others } })
  })
}

async function forgetSecret(
  context: Context,
  profileName: string,
  profile: Profile,
  role: Role,
): Promise<void> {
  const place = placeOf(profile, role)
  if (place !== undefined) await removeSecret(context, `${profileName}/${role}`, place)
}

async function writeWithout(context: Context, known: Profiles, profileName: string): Promise<void> {
  const { [profileName]: _, ...profiles } = known.profiles
  const current = known.current === profileName ? Object.keys(profiles)[0] : known.current
  await writeProfiles(context, { current, profiles })
}

/** Makes this the profile that commands use if none is named. False if there is none of this name. */
export function useProfile(context: Context, profileName: string): Promise<boolean> {
  return alone(context, async () => {
    const known = await readProfiles(context)
    if (!Object.hasOwn(known.profiles, profileName)) return false
    await writeProfiles(context, { ...known, current: profileName })
    return true
  })
}
