import type { PrivateJwk } from '../../client/assertion.ts'
import { parseJson } from '../../domain/formats/json.ts'
import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import type { LoginAuth } from '../identity/auth.ts'
import type { Keychain } from './keychain.ts'
import { configPath } from './paths.ts'
import { readPrivateFile, removeFile, writePrivateFile } from './private-file.ts'
import type { Place } from './profiles.ts'

/** The secret of a login, as it is stored. */
export type StoredSecret =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'client_secret'; readonly client_id: string; readonly client_secret: string }
  | { readonly kind: 'private_key_jwt'; readonly client_id: string; readonly private_jwk: PrivateJwk }

/** A secret may be sent to this server only. */
export type KeptSecret = StoredSecret & { readonly server: string }

/** The secret of an operator's login: a `mop_` token. */
export interface OperatorSecret {
  readonly kind: 'operator'
  readonly token: string
  /** RFC 3339. */
  readonly expires: string
  readonly server: string
}

export function authOf(secret: StoredSecret, issuer?: string): LoginAuth {
  switch (secret.kind) {
    case 'bearer':
      return { kind: secret.kind, token: secret.token }
    case 'client_secret':
      return { kind: secret.kind, clientId: secret.client_id, clientSecret: secret.client_secret }
    case 'private_key_jwt':
      return { kind: secret.kind, clientId: secret.client_id, privateJwk: secret.private_jwk, issuer }
  }
}

/** Where a secret is stored: for the profile, and in words for the user. */
export interface KeptAt {
  readonly place: Place
  readonly title: string
}

/** The name of a secret: `profile/kind`. */
export type SecretName = `${string}/${'login' | 'operator' | 'enrollment'}`

export function secretPath(context: Context, name: SecretName): string {
  return configPath(context, 'secrets', `${name.replace('/', '.')}.json`)
}

/** Stores a secret in the keychain, or without one in a file of mode 0600. Throws `CliError`. */
export async function saveSecret(context: Context, name: SecretName, value: object): Promise<KeptAt> {
  const keychain = await keychainOf(context)
  const text = JSON.stringify(value)
  if (keychain !== undefined) {
    await keychain.save(name, text)
    return { place: 'keychain', title: keychain.title }
  }
  const path = secretPath(context, name)
  await writePrivateFile(path, `${text}\n`)
  return { place: 'file', title: path }
}

/** Undefined if there is none. Throws `CliError` for a locked keychain or an unsafe file. */
export async function loadSecret<T extends object = StoredSecret>(
  context: Context,
  name: SecretName,
  place: Place,
): Promise<T | undefined> {
  const text =
    place === 'file'
      ? await readPrivateFile(secretPath(context, name))
      : await (await needKeychain(context)).load(name)
  if (text === undefined) return undefined
  const value = parseJson(text)
  if (value !== undefined) return value as T
  throw new CliError('secret_broken', 'The stored login is damaged.', {
    exit: 4,
    hint: 'Run `mayfly logout`, then `mayfly login` or `mayfly enroll`.',
  })
}

export async function removeSecret(context: Context, name: SecretName, place: Place): Promise<void> {
  if (place === 'file') await removeFile(secretPath(context, name))
  else await (await needKeychain(context)).remove(name)
}

async function keychainOf(context: Context): Promise<Keychain | undefined> {
  const { findKeychain } = await import('./keychain.ts')
  return findKeychain(context, context.globals.keychain !== false)
}

async function needKeychain(context: Context): Promise<Keychain> {
  const keychain = await keychainOf(context)
  if (keychain !== undefined) return keychain
  throw new CliError('keychain_absent', 'The login is in the keychain, which is not available here.', {
    exit: 4,
    hint: 'Use the desktop session that you logged in from, or log in again with --no-keychain.',
  })
}
