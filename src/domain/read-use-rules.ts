import { invalid } from './problems.ts'
import type { HttpUse, Place, Rule, UseRules } from './use.ts'
import { isSigningName, originFault, placeFault, ruleFault } from './use-rules.ts'

/** What an administrator names, as it is sent: the schema has checked its types and lengths. */
export interface SentUseRules {
  readonly uses?: readonly SentUse[] | undefined
  readonly allow?: readonly SentRule[] | undefined
  readonly deny?: readonly SentRule[] | undefined
  readonly services?: readonly string[] | undefined
}

export interface SentUse {
  readonly protocol: 'http'
  readonly name: string
  readonly origin: string
  readonly local?: boolean | undefined
  readonly ca?: string | undefined
  readonly accounts?: readonly string[] | undefined
  readonly places: readonly SentPlace[]
  readonly allow: readonly SentRule[]
  readonly deny?: readonly SentRule[] | undefined
}

export interface SentRule {
  readonly methods: readonly string[]
  readonly path: string
  readonly slashes?: boolean | undefined
  readonly caseless?: boolean | undefined
  readonly use?: string | undefined
}

export type SentPlace = { readonly field?: string | undefined } & (
  | { readonly in: 'header' | 'query'; readonly name: string }
  | { readonly in: 'basic' | 'path' }
  | { readonly in: 'body'; readonly name: string; readonly max_bytes: number }
  | {
      readonly in: 'sigv4'
      readonly key_id: string
      readonly token?: string | undefined
      readonly allow?: readonly string[] | undefined
      readonly deny: readonly string[]
    }
)

/** Refuses what a proxy would not take, as `invalid_request` that names the place. Certificates are checked by whoever can read them. */
export function readUseRules(sent: SentUseRules): UseRules {
  const uses = sent.uses?.map((use, index) => readUse(use, `uses.uses[${index}]`))
  const names = new Set(uses?.map(({ name }) => name))
  if (uses !== undefined && names.size < uses.length)
    throw invalid('"uses.uses" has two uses of the same name.')
  return {
    ...(uses && { uses }),
    ...(sent.allow && { allow: sent.allow.map((one, index) => readRule(one, `uses.allow[${index}]`)) }),
    ...(sent.deny && { deny: sent.deny.map((one, index) => readRule(one, `uses.deny[${index}]`)) }),
    ...(sent.services && { services: readServices(sent.services, 'uses.services') }),
  }
}

function readUse(sent: SentUse, at: string): HttpUse {
  const use: HttpUse = {
    protocol: 'http',
    name: readName(sent.name, `${at}.name`),
    origin: readOrigin(sent.origin, `${at}.origin`),
    local: sent.local ?? false,
    ...(sent.ca === undefined ? {} : { ca: sent.ca }),
    ...(sent.accounts && { accounts: readAccounts(sent.accounts, `${at}.accounts`) }),
    places: sent.places.map((place, index) => readPlace(place, `${at}.places[${index}]`)),
    allow: sent.allow.map((one, index) => readRule(one, `${at}.allow[${index}]`)),
    deny: (sent.deny ?? []).map((one, index) => readRule(one, `${at}.deny[${index}]`)),
  }
  requireNone(originFault(use), at)
  return use
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Of one list: the administrator's `services` may come on top of it. */
const MAX_SERVICES = 64
const FIELD = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/
/** As `local_user` of a configuration. */
const ACCOUNT = /^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}$/
const PRINTABLE = /^[\x21-\x7e]{1,64}$/

function readName(name: string, at: string): string {
  if (NAME.test(name)) return name
  throw invalid(`"${at}" is letters, digits, ".", "_" and "-".`)
}

function readField(field: string, at: string): string {
  if (FIELD.test(field)) return field
  throw invalid(`"${at}" is not the name of a field of a credential.`)
}

function readAccounts(accounts: readonly string[], at: string): readonly string[] {
  if (accounts.every((account) => ACCOUNT.test(account))) return accounts
  throw invalid(`"${at}" has names or numbers of accounts of this machine.`)
}

const LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const ORIGIN = new RegExp(
  `^https?://((\\*\\.)?(${LABEL}\\.)*${LABEL}|\\[[0-9a-f:.]{2,45}\\])(:[1-9][0-9]{0,4})?$`,
)

/** As a browser writes it: lower case, no port that is the scheme's, an address in its one form. */
function readOrigin(origin: string, at: string): string {
  // A wildcard is no host name to a parser of addresses.
  const plain = origin.replace('//*.', '//any.')
  if (ORIGIN.test(origin) && URL.parse(plain)?.origin === plain) return origin
  throw invalid(`"${at}" is a scheme, a host in lower case and perhaps a port: https://api.example.com.`)
}

function readPlace(sent: SentPlace, at: string): Place {
  const place = placeOf(sent, at)
  requireNone(placeFault(place), at)
  return place
}

function placeOf(place: SentPlace, at: string): Place {
  const field = place.field === undefined ? {} : { field: readField(place.field, `${at}.field`) }
  switch (place.in) {
    case 'header':
      return { ...field, in: 'header', name: place.name.toLowerCase() }
    case 'query':
      return { ...field, in: 'query', name: readParameter(place.name, at) }
    case 'body':
      return { ...field, in: 'body', name: readParameter(place.name, at), maxBytes: place.max_bytes }
    case 'basic':
    case 'path':
      return { ...field, in: place.in }
    case 'sigv4':
      return {
        ...field,
        in: 'sigv4',
        keyId: readField(place.key_id, `${at}.key_id`),
        ...(place.token === undefined ? {} : { token: readField(place.token, `${at}.token`) }),
        ...(place.allow === undefined ? {} : { allow: readServices(place.allow, `${at}.allow`) }),
        deny: readServices(place.deny, `${at}.deny`),
      }
    default: {
      const never: never = place
      return never
    }
  }
}

function readParameter(name: string, at: string): string {
  if (PRINTABLE.test(name)) return name
  throw invalid(`"${at}.name" is 1 to 64 visible ASCII characters.`)
}

function readServices(services: readonly string[], at: string): readonly string[] {
  if (services.length > MAX_SERVICES) throw invalid(`"${at}" has at most ${MAX_SERVICES} services.`)
  if (services.every(isSigningName)) return services
  throw invalid(`"${at}" has signing names of AWS, such as "s3".`)
}

function readRule(sent: SentRule, at: string): Rule & { readonly use?: string } {
  const { slashes, caseless, use } = sent
  const rule = {
    methods: sent.methods,
    path: sent.path,
    ...(slashes === undefined ? {} : { slashes }),
    ...(caseless === undefined ? {} : { caseless }),
  }
  requireNone(ruleFault(rule), at)
  return { ...rule, ...(use === undefined ? {} : { use: readName(use, `${at}.use`) }) }
}

/** A fault is `.path must …`. */
function requireNone(fault: string | undefined, at: string): void {
  if (fault !== undefined) throw invalid(`"${at}${fault.replace(' ', '" ')}.`)
}
