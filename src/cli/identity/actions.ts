import type { CallOptions } from '../../client/send.ts'
import { parseJson } from '../../domain/formats/json.ts'
import type { Context } from '../frame/verb.ts'
import { ask } from './ask.ts'
import { given, noToken } from './source.ts'

const URL_NAME = 'ACTIONS_ID_TOKEN_REQUEST_URL'
const TOKEN_NAME = 'ACTIONS_ID_TOKEN_REQUEST_TOKEN'

/** What GitHub Actions and Forgejo Actions have in common: two variables in each job that may ask. */
export const hasRequest = (context: Context): boolean =>
  given(context, URL_NAME) !== undefined && given(context, TOKEN_NAME) !== undefined

/** Each job has a request token of its own. */
export const jobOf = (context: Context): string =>
  JSON.stringify([given(context, URL_NAME), given(context, TOKEN_NAME)])

export async function requestToken(
  context: Context,
  { title, needs }: { readonly title: string; readonly needs: string },
  audience: string,
  { signal }: CallOptions,
): Promise<string> {
  const [address, bearer] = [given(context, URL_NAME), given(context, TOKEN_NAME)]
  if (address === undefined || bearer === undefined) throw noToken(title, `it needs ${needs}.`)
  if (!URL.canParse(address) || !/^[\x21-\x7e]+$/.test(bearer))
    throw noToken(title, `${URL_NAME} or ${TOKEN_NAME} is damaged.`)
  const url = `${address}${address.includes('?') ? '&' : '?'}audience=${encodeURIComponent(audience)}`
  const headers = { authorization: `Bearer ${bearer}`, accept: 'application/json' }
  const { text } = await ask(context, title, { url, headers, timeoutMs: 10_000, signal })
  const { value } = (parseJson(text) ?? {}) as { value?: unknown }
  if (typeof value !== 'string') throw noToken(title, 'its answer holds none.')
  return value
}
