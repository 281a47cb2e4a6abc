import type { Site } from '../types.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Hosts take any user name beside a token, but for these. */
const USERS: Readonly<Record<string, string>> = { github: 'x-access-token', gitlab: 'oauth2' }
const MOST_SETTINGS = 9999

/**
 * The settings with which git goes to the sites and has a login there at once, whatever form the address of a repository has. They
 * come after those that the environment already has.
 */
export function gitVariables(
  sites: readonly Site[],
  env: Env,
): { readonly variables: Readonly<Record<string, string>>; readonly skipped: boolean } {
  const settings = sites.flatMap(settingsOf)
  const given = env['GIT_CONFIG_COUNT'] ?? ''
  const first = /^\d{1,4}$/.test(given) ? Number(given) : 0
  if (settings.length === 0) return { variables: {}, skipped: false }
  if (first + settings.length > MOST_SETTINGS) return { variables: {}, skipped: true }
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(first + settings.length) }
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${first + index}`] = key
    variables[`GIT_CONFIG_VALUE_${first + index}`] = value
  }
  return { variables, skipped: false }
}

function settingsOf({ held, use, url }: Site): [key: string, value: string][] {
  const place = use.places.find((one) => one.in === 'basic') ?? use.places[0]
  const password = held.placeholders.get(place?.field ?? '')
  const login =
    password === undefined
      ? undefined
      : Buffer.from(`${USERS[held.type] ?? 'mayfly'}:${password}`).toString('base64')
  return [
    ...addressesOf(use.origin).map((from): [string, string] => [`url.${url}/.insteadOf`, from]),
    // A helper of the user's must neither be asked nor told for this address, nor its proxy be used.
    [`credential.${url}.helper`, ''],
    [`http.${url}/.proxy`, ''],
    ...(login === undefined
      ? []
      : [[`http.${url}/.extraHeader`, `Authorization: Basic ${login}`] as [string, string]]),
  ]
}

/** Each form in which a repository of the host may be named. */
function addressesOf(origin: string): string[] {
  const { host, hostname, port } = new URL(origin)
  const secure = [`${origin}/`, ...(origin.startsWith('http:') ? [] : [`https://git@${host}/`])]
  return port === '' ? [...secure, `git@${hostname}:`, `ssh://git@${hostname}/`] : secure
}
