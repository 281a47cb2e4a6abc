import { parseJson } from '../../domain/formats/json.ts'
import { CliError } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { configPath } from './paths.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'
import { digest } from './token-cache.ts'

type Where = Pick<Surroundings, 'env' | 'home'>

export type Place = 'keychain' | 'file'

/** The logins at one server, of an agent, an operator or both, without their secrets. */
export interface Profile {
  /** In the form of `serverOf`. */
  readonly server: string
  readonly issuer?: string | undefined
  readonly agent?: { readonly id: string; readonly name: string } | undefined
  /** How the agent logs in; absent, as is `secret_in`, without a login of an agent. */
  readonly login?: 'bearer' | 'client_secret' | 'private_key_jwt' | undefined
  readonly client_id?: string | undefined
  readonly ca_file?: string | undefined
  readonly secret_in?: Place | undefined
  readonly operator?: KeptOperator | undefined
  /** Thumbprints of the keys of the server. */
  readonly server_keys?: readonly string[] | undefined
}

/** The login of a person: who they are, and the session that it is. */
export interface KeptOperator {
  readonly id: string
  /** Absent: their provider of single sign-on has verified none. */
  readonly email?: string | undefined
  readonly name: string
  readonly method: OperatorMethod
  readonly session: string
  /** RFC 3339, by the clock of this machine. */
  readonly expires: string
  /** What the server calls itself, as a person has accepted it. */
  readonly issuer: string
  readonly secret_in: Place
}

/** How they log in: with a browser on this machine, or with a code that they type on another. */
export type OperatorMethod = 'browser' | 'device'

/** What a person calls them. */
export const nameOf = ({ email, name }: Pick<KeptOperator, 'email' | 'name'>): string => email ?? name

export interface Profiles {
  /** The profile to use if none is named. */
  readonly current?: string | undefined
  readonly profiles: Readonly<Record<string, Profile>>
}

export const DEFAULT_PROFILE = 'default'
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** Throws `CliError` (usage) for an invalid name. */
export function checkProfileName(name: string): string {
  if (NAME.test(name)) return name
  throw new CliError('usage', `${JSON.stringify(name.slice(0, 80))} is not a valid profile name.`, {
    exit: 2,
    hint: 'Use at most 64 letters, digits, dots, hyphens and underscores.',
  })
}

/**
 * A name for the profile of this server. It is the host where that says it all, and otherwise carries a digest of the
 * address: `/team/a` and `/team-a` must not share a profile, nor may a name that another profile has be taken.
 */
export function newProfileName(server: string, known: Profiles): string {
  const host = /^https:\/\/([a-z0-9][a-z0-9.-]{0,63})$/.exec(server)?.[1]
  if (host !== undefined && !Object.hasOwn(known.profiles, host)) return host
  const readable = server.replace(/^\w+:[^a-z0-9]*/i, '').replace(/[^A-Za-z0-9._-]+/g, '-')
  return `${readable.slice(0, 55)}-${digest(server).slice(0, 8)}`.replace(/^-+/, '')
}

export function profilesPath(where: Where): string {
  return configPath(where, 'config.json')
}

/** No profiles if the file does not exist. Throws `CliError` if it cannot be read. */
export async function readProfiles(where: Where): Promise<Profiles> {
  const path = profilesPath(where)
  const text = await readPrivateFile(path, { openTo: 'readers' })
  if (text === undefined) return { profiles: {} }
  const value = parseJson(text) as Partial<Profiles> | null | undefined
  if (typeof value?.profiles === 'object' && value.profiles !== null) return value as Profiles
  throw new CliError('profiles_broken', `${path} is damaged.`, {
    hint: 'Fix it, or delete it and log in again.',
  })
}

export async function writeProfiles(where: Where, profiles: Profiles): Promise<void> {
  await writePrivateFile(profilesPath(where), `${JSON.stringify(profiles, null, 2)}\n`)
}
