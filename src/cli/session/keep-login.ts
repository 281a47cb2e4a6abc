import type { Context } from '../frame/verb.ts'
import { changeAlone } from './file-lock.ts'
import { type Profile, profilesPath, readProfiles, writeProfiles } from './profiles.ts'
import {
  type KeptAt,
  type KeptSecret,
  loadSecret,
  removeSecret,
  type SecretName,
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

/** Where a login is stored, and under which name. */
export type KeptLogin = KeptAt & { readonly profileName: string }

/** Stores a login as the profile of the target; it becomes current if none is. If it throws, the old login is unchanged. */
export function keepLogin(context: Context, login: NewLogin): Promise<KeptLogin> {
  return alone(context, () => keep(context, login))
}

async function keep(context: Context, login: NewLogin): Promise<KeptLogin> {
  const { target, secret, agent, issuer, serverKeys } = login
  const known = await readProfiles(context)
  // A login at another server may have taken the name since.
  const profileName = target.profileFrom === 'default' ? profileFor(known, target.server) : target.profileName
  const name: SecretName = `${profileName}/login`
  const before = known.profiles[profileName]
  const old = await oldSecret(context, name, before)
  const value: KeptSecret = { ...secret, server: target.server.text }
  const kept = await saveSecret(context, name, value)
  const profile: Profile = {
    server: target.server.text,
    login: secret.kind,
    secret_in: kept.place,
    issuer,
    agent,
    client_id: secret.kind === 'bearer' ? undefined : secret.client_id,
    ca_file: target.caFile,
    server_keys: serverKeys.length === 0 ? undefined : serverKeys,
  }
  try {
    await writeProfiles(context, {
      current: known.current ?? profileName,
      profiles: { ...known.profiles, [profileName]: profile },
    })
  } catch (error) {
    await (old === undefined
      ? removeSecret(context, name, kept.place)
      : saveSecret(context, name, old)
    ).catch(() => {})
    throw error
  }
  if (before !== undefined && before.secret_in !== kept.place)
    await removeSecret(context, name, before.secret_in).catch(() => {})
  return { ...kept, profileName }
}

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
  name: SecretName,
  before: Profile | undefined,
): Promise<object | undefined> {
  if (before === undefined) return undefined
  return loadSecret<KeptSecret>(context, name, before.secret_in).catch(() => undefined)
}

/** Removes the secret, then the profile. False if there was none. */
export function forgetLogin(context: Context, profileName: string): Promise<boolean> {
  return alone(context, () => forget(context, profileName))
}

async function forget(context: Context, profileName: string): Promise<boolean> {
  const known = await readProfiles(context)
  const profile = known.profiles[profileName]
  if (profile === undefined) return false
  await removeSecret(context, `${profileName}/login`, profile.secret_in)
  const { [profileName]: _, ...profiles } = known.profiles
  const current = known.current === profileName ? Object.keys(profiles)[0] : known.current
  await writeProfiles(context, { current, profiles })
  return true
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
