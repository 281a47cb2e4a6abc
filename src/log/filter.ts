import { Secret } from '../domain/secret.ts'

/** Stands for a secret value in a log. */
export const HIDDEN = '[redacted]'

const MAX_DEPTH = 8
const MAX_STRING = 16_384
const MAX_ITEMS = 256

const SECRET_NAMES = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'passwd',
  'passphrase',
  'pwd',
  'assertion',
  'clientassertion',
  'enrollmentproof',
  'mayflyconsole',
  'mayflyconfirmation',
  'bearer',
  'jwt',
  'dsn',
  'apikey',
  'handle',
  'sealed',
  'databaseurl',
])
const SECRET_ENDS =
  /(?:token|secret|password|privatekey|masterkey|secretkey|accesskey|credentials?key|apikey)$/
/** `tokens: 3` is a count; any other value under a plural is hidden. */
const SECRET_PLURALS = /(?:tokens|secrets|passwords|privatekeys|cookies)$/

function isSecretName(name: string, value: unknown): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  if (SECRET_NAMES.has(plain) || SECRET_ENDS.test(plain)) return true
  return SECRET_PLURALS.test(plain) && typeof value !== 'number'
}

/** Applied to the finished line, in which line breaks of a key are the two characters `\n`. */
const VALUES: readonly [RegExp, string][] = [
  [
    /-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END )(?:[^"\\]|\\.))*(?:-----END [A-Z0-9 ]*-----)?/gs,
    HIDDEN,
  ],
  [/ck([rs])_[0-9a-f]{8,}/gi, `ck$1_${HIDDEN}`],
  // Logins of people.
  [/(mf[skl]|mop|mdc|mac)_[0-9a-f]{8,}/gi, `$1_${HIDDEN}`],
  [/eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*/g, HIDDEN],
  [/\b(Bearer|Basic) +[A-Za-z0-9._~+/=-]{16,}/gi, `$1 ${HIDDEN}`],
  [/\b(gh[a-z]_|github_pat_)[A-Za-z0-9_]{16,}/g, `$1${HIDDEN}`],
  // The text of a master key.
  [/\b\d{1,9}:[0-9a-f]{64}\b/gi, HIDDEN],
  // Up to the last "@" of the word, because an unencoded password may contain any character.
  [/(:\/\/[^\s:/?#@"\\]{0,256}:)(?:[^\s"\\]|\\[^nrt]){1,1024}@/g, `$1${HIDDEN}@`],
  // RFC 6749 form bodies and connection strings.
  [
    /\b((?:client_secret|client_assertion|access_token|password|passwd|sslpassword)=)(?!\[redacted\])(?:[^\s&"\\]|\\[^nrt])+/gi,
    `$1${HIDDEN}`,
  ],
]

export function hideValues(text: string): string {
  let clean = text
  for (const [pattern, instead] of VALUES) clean = clean.replace(pattern, instead)
  return clean
}

/** JSON escapes C0 itself; a terminal also obeys C1 and DEL, and some viewers break at U+2028. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Copies a value into plain, bounded JSON without the values of secret fields. Never throws. */
export function cleanValue(value: unknown): unknown {
  return clean(value, 0, new Set())
}

function clean(value: unknown, depth: number, above: Set<object>): unknown {
  switch (typeof value) {
    case 'string':
      // Filter before truncating: half of a secret would not be recognized.
      return cut(hideValues(value))
    case 'number':
    case 'boolean':
    case 'undefined':
      return value
    case 'bigint':
      return String(value)
    case 'function':
    case 'symbol':
      return undefined
    case 'object':
      break
    default:
      return undefined
  }
  if (value === null) return null
  if (value instanceof Secret) return HIDDEN
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
  if (above.has(value)) return '[circular]'
  if (depth >= MAX_DEPTH) return '[too deep]'
  above.add(value)
  try {
    return cleanObject(value, depth + 1, above)
  } catch {
    return '[unreadable]'
  } finally {
    above.delete(value)
  }
}

function cut(text: string): string {
  return text.length > MAX_STRING ? `${text.slice(0, MAX_STRING)}… (${text.length} characters)` : text
}

function cleanObject(value: object, depth: number, above: Set<object>): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (value instanceof Error) return cleanError(value, depth, above)
  if (value instanceof Map) return cleanFields(Object.fromEntries(value), depth, above)
  if (value instanceof URL) return clean(value.href, depth, above)
  if (value instanceof Set || Array.isArray(value)) {
    return [...value].slice(0, MAX_ITEMS).map((item) => clean(item, depth, above) ?? null)
  }
  const toJson = 'toJSON' in value ? value.toJSON : undefined
  if (typeof toJson === 'function') return clean(toJson.call(value), depth, above)
  return cleanFields(value, depth, above)
}

function cleanFields(value: object, depth: number, above: Set<object>): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(value).slice(0, MAX_ITEMS)) {
    const field = (value as Record<string, unknown>)[key]
    const hidden =
      field !== undefined && field !== null && typeof field !== 'boolean' && isSecretName(key, field)
    Object.defineProperty(result, hideValues(key), {
      value: hidden ? HIDDEN : clean(field, depth, above),
      enumerable: true,
      configurable: true,
    })
  }
  return result
}

function cleanError(error: Error, depth: number, above: Set<object>): Record<string, unknown> {
  const own = cleanFields(error, depth, above)
  const result: Record<string, unknown> = {
    ...own,
    type: clean(error.name, depth, above),
    message: clean(error.message, depth, above),
    stack: clean(error.stack, depth, above),
  }
  if (error.cause !== undefined) result['cause'] = clean(error.cause, depth, above)
  if (error instanceof AggregateError) result['errors'] = clean(error.errors, depth, above)
  return result
}
