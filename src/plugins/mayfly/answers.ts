import type { Handle, Issued, IssueRequest, ListedPage } from '../../backends/kind.ts'
import { type BackendError, unavailable } from '../../domain/backend-error.ts'
import { isObject, parseJson } from '../../domain/formats/json.ts'
import { isId } from '../../domain/ids.ts'
import type { IssueResponse, ListResponse } from '../proto/mayfly_plugin_v1_pb.ts'
import { cleanMessage, type Hide, hiderOf } from '../text.ts'

const NAME = /^[a-z][a-z0-9_]{0,63}$/
const MAX_SECRET = 65_536
const MAX_FIELDS_BYTES = 131_072
const MAX_FACTS_BYTES = 4_096
const MAX_HANDLE_BYTES = 8_192
const MAX_NAMES = 64
const MAX_LISTED = 10_000
const MAX_WARNINGS = 16
const MAX_NEXT = 1_024

/** Mayfly's own entry in the handle of a credential of a plugin. */
export const ID_NAME = 'credential_id'

/** What an answer is checked against. */
export interface Answering {
  /** Of the plugin. */
  readonly name: string
  readonly hide: Hide
  readonly revokes: boolean
  now(): number
}

/** Nothing of the answer itself: it may hold a secret. */
export function garbage(name: string, says: string): BackendError {
  return unavailable(`The plugin ${name} answered ${says}.`)
}

type Scalars = Readonly<Record<string, string | number | null>>

/** A flat JSON object with names as we write them. */
function readScalars(text: string, what: string, maxBytes: number, of: Answering): Scalars {
  const fail = (says: string) => garbage(of.name, `with ${what} that ${says}`)
  if (Buffer.byteLength(text) > maxBytes) throw fail('are too long')
  const value = parseJson(text)
  if (value === undefined) throw fail('are not JSON')
  if (!isObject(value)) throw fail('are no object')
  const entries = Object.entries(value)
  if (entries.length > MAX_NAMES) throw fail('are too many')
  for (const [name, one] of entries) {
    if (!NAME.test(name)) throw fail('have a name which is not one')
    const isNumber = typeof one === 'number' && Number.isFinite(one)
    if (typeof one !== 'string' && !isNumber && one !== null) throw fail('are not texts or numbers')
  }
  return value as Scalars
}

function withoutNulls(
  scalars: Scalars,
  what: string,
  of: Answering,
): Readonly<Record<string, string | number>> {
  if (Object.values(scalars).includes(null)) throw garbage(of.name, `with ${what} that are empty`)
  return scalars as Readonly<Record<string, string | number>>
}

export function readIssued(reply: IssueResponse, request: IssueRequest<unknown>, of: Answering): Issued {
  const { credentialId } = request
  const expiry = Number(reply.upstreamExpiresAt)
  if (expiry !== 0 && !(expiry > of.now() && expiry <= request.expiresAt)) {
    throw garbage(of.name, 'with an expiry that is past or later than the one asked for')
  }
  const handle = of.revokes ? { handle: readHandle(reply.handleJson, credentialId, of) } : {}
  const secret = readSecret(reply, of)
  const facts = reply.factsJson === '' ? {} : { facts: readFacts(reply, secret, of) }
  const upstreamExpiresAt = expiry === 0 ? {} : { upstreamExpiresAt: expiry }
  return { ...secret, ...handle, ...facts, ...upstreamExpiresAt }
}

function readSecret({ secret, fieldsJson }: IssueResponse, of: Answering): Pick<Issued, 'secret' | 'fields'> {
  if ((secret === '') === (fieldsJson === '')) {
    throw garbage(of.name, 'without a secret, or with both a secret and fields')
  }
  if (secret !== '') {
    if (Buffer.byteLength(secret) > MAX_SECRET) throw garbage(of.name, 'with a secret that is too long')
    return { secret }
  }
  const fields = withoutNulls(readScalars(fieldsJson, 'fields', MAX_FIELDS_BYTES, of), 'fields', of)
  if (!Object.values(fields).some((value) => value !== '')) throw garbage(of.name, 'without a secret')
  return { fields }
}

/** Names of fields that say where a secret is for, and to whom it belongs. What another field holds may be the secret. */
const KNOWN_TO_ALL =
  /^(?:(?:user|client|account|role|login|host|server|database|db|project|tenant|key|access_key|token|bucket|vhost|app)_?(?:name|id)?|username|hostname|dbname|name|id|port|region|address|schema|expires_at|scope|type)$/
/** Named so, they are secrets after all. */
const SECRET_ANYWAY = /^(?:key|token|login|access_key)$/

/** Facts go into the audit: none may hold the secret, a field that may be one, or a secret of the configuration. */
function readFacts(
  { factsJson }: IssueResponse,
  { secret, fields = {} }: Pick<Issued, 'secret' | 'fields'>,
  of: Answering,
): NonNullable<Issued['facts']> {
  const facts = withoutNulls(readScalars(factsJson, 'facts', MAX_FACTS_BYTES, of), 'facts', of)
  const parts = Object.entries(fields).filter(([name]) => mayBeSecret(name))
  const issued = hiderOf([secret ?? '', ...parts.map(([, value]) => String(value))])
  for (const value of Object.values(facts)) {
    const text = String(value)
    if (of.hide(text) !== text || issued(text) !== text)
      throw garbage(of.name, 'with facts that hold a secret')
  }
  return facts
}

const mayBeSecret = (name: string) => SECRET_ANYWAY.test(name) || !KNOWN_TO_ALL.test(name)

function readHandle(json: string, credentialId: string, of: Answering): Handle {
  const own = json === '' ? {} : readScalars(json, 'handles', MAX_HANDLE_BYTES, of)
  if (Object.hasOwn(own, ID_NAME)) throw garbage(of.name, `with a handle whose name "${ID_NAME}" is taken`)
  return { [ID_NAME]: credentialId, ...own }
}

export function readListed(reply: ListResponse, after: string | undefined, of: Answering): ListedPage {
  if (reply.items.length > MAX_LISTED) throw garbage(of.name, 'with too many accounts')
  const items = reply.items.map(({ credentialId, handleJson, expiresAt }) => {
    if (!isId('credential', credentialId)) throw garbage(of.name, 'with accounts that are not ours')
    const handle = readHandle(handleJson, credentialId, of)
    return { credentialId, handle, ...(expiresAt > 0n ? { expiresAt: Number(expiresAt) } : {}) }
  })
  const { next } = reply
  if (next === '') return { items }
  if (next === after || next.length > MAX_NEXT) throw garbage(of.name, 'with a next page that is none')
  return { items, next }
}

export function readWarnings(warnings: readonly string[], of: Answering): readonly string[] {
  const clean = warnings.slice(0, MAX_WARNINGS).map((text) => cleanMessage(text, of.hide))
  return clean.filter((text) => text !== '')
}

/** New values of fields that the configuration has. */
export function readSecrets(
  secrets: Readonly<Record<string, string>>,
  known: readonly string[],
  of: Answering,
): Readonly<Record<string, string>> {
  const entries = Object.entries(secrets)
  if (entries.length === 0) throw garbage(of.name, 'without new secrets')
  for (const [name, value] of entries) {
    if (!known.includes(name) || value === '' || value.length > MAX_SECRET) {
      throw garbage(of.name, 'with new secrets that its configuration cannot hold')
    }
  }
  return Object.fromEntries(entries)
}
