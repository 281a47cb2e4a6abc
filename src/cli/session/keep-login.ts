import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { waitForLock } from './file-lock.ts'
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
import { givenOf, LOGIN_VARIABLES, type Target } from './session.ts'

export interface NewLogin {
  readonly target: Target
  readonly secret: StoredSecret
  readonly agent?: { readonly id: string; readonly name: string } | undefined
  readonly issuer?: string | undefined
}

/**
 * Keeps a login under the profile of the target, and makes it the current one when there is none.
 * Throws `CliError`; then the login of before is as it was.
 */
export function keepLogin(context: Context, login: NewLogin): Promise<KeptAt> {
  return alone(context, () => keep(context, login))
}

async function keep(context: Context, { target, secret, agent, issuer }: NewLogin): Promise<KeptAt> {
  const { profileName } = target
  const name: SecretName = `${profileName}/login`
  const known = await readProfiles(context)
  const before = known.profiles[profileName]
  const old = await oldSecret(context, name, before)
  const value: KeptSecret = { ...secret, server: target.server.text }
  const kept = await saveSecret(context, name, value)
  const profile: Profile = {
    server: target.server.text,
    login: secret.kind,
    secret_in: kept.place,
    ...(issuer === undefined ? {} : { issuer }),
    ...(agent === undefined ? {} : { agent }),
    ...(secret.kind === 'bearer' ? {} : { client_id: secret.client_id }),
    ...(target.caFile === undefined ? {} : { ca_file: target.caFile }),
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
  return kept
}

/** After a login was kept: tells whoever has another in the environment that it comes first. */
export function noteVariables({ env, out }: Context): void {
  const variable = LOGIN_VARIABLES.find((name) => givenOf(env[name]) !== undefined)
  if (variable !== undefined) out.note(`${variable} is set, and is used before this login: unset it.`)
}

/** All logins stand in one file: whoever changes it has read it before, and another must not have changed it since. */
async function alone<T>(context: Context, change: () => Promise<T>): Promise<T> {
  const path = profilesPath(context)
  const release = await waitForLock(`${path}.lock`, context.signal)
  if (release === undefined)
    throw new CliError('login_busy', `Another mayfly is changing ${path}, and does not come to an end.`, {
      hint: 'Answer what it asks, or end it, and try again.',
    })
  try {
    return await change()
  } finally {
    release()
  }
}

/** What there was, to be put back; a place that cannot be read is left as it is. */
async function oldSecret(
  context: Context,
  name: SecretName,
  before: Profile | undefined,
): Promise<object | undefined> {
  if (before === undefined) return undefined
  return loadSecret<KeptSecret>(context, name, before.secret_in).catch(() => undefined)
}

/** Removes the secret, then the profile. False when there was none. */
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
  await writeProfiles(context, { ...(current === undefined ? {} : { current }), profiles })
  return true
}
