import type { Kind } from '../../../../src/client/wire.ts'

/**
 * The form of a configuration, from the JSON Schema of its kind: what each field is entered with, what a configuration looks like in
 * the form, and what the form says. Every schema of a built-in kind and of a plugin (`src/plugins/schema.ts`) has one; what has no
 * control of its own, such as free claims, is entered as JSON. The server validates; here only what it could not even be asked.
 */
export type Control =
  | { readonly type: 'text'; readonly isSecret: boolean; readonly isLong: boolean }
  | { readonly type: 'number'; readonly isWhole: boolean }
  | { readonly type: 'switch' }
  | { readonly type: 'choice'; readonly values: readonly Choice[] }
  /** Some of these texts. */
  | { readonly type: 'set'; readonly values: readonly string[] }
  /** Texts, one in a line. `mayBeOne`: a single one is sent as a text. */
  | { readonly type: 'lines'; readonly mayBeOne: boolean }
  | { readonly type: 'list'; readonly item: Control }
  | { readonly type: 'group'; readonly fields: readonly FormField[] }
  | { readonly type: 'json' }
type Choice = string | number | boolean

export interface FormField {
  readonly name: string
  readonly description: string
  readonly control: Control
  /** Required, and without a default. */
  readonly isNeeded: boolean
  /** Stands at the top of the form, and not under "More". */
  readonly isFirst: boolean
  readonly default: unknown
  /** What an empty list means: `[]`, and not "left out". */
  readonly mayBeEmpty: boolean
  /** A value to show where nothing was entered. */
  readonly example: string | undefined
  /** Some values need `admin:*`. */
  readonly isGuarded: boolean
  /** Selects the upstream: a change moves the backend. */
  readonly isUpstream: boolean
}

/** As it stands in the form. */
export type FormValue = string | boolean | readonly FormValue[] | FormValues
export interface FormValues {
  readonly [name: string]: FormValue
}

type Schema = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Texts above this length have several lines, such as keys and certificates. */
const LONG_TEXT = 2_048
/** The mark of a secret that is stored: sent back, it stays. */
export const KEPT = '[redacted]'

export const fieldsOfKind = (kind: Pick<Kind, 'config'>): readonly FormField[] => fieldsOf(kind.config)

/** The fields of an object's schema, in its order. */
export function fieldsOf(schema: Schema): readonly FormField[] {
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  const example: unknown = Array.isArray(schema['examples']) ? schema['examples'][0] : undefined
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  return Object.entries(properties).map(([name, value]) => {
    const field: Schema = isObject(value) ? value : {}
    const control = controlOf(field)
    const isSecret = control.type === 'text' && control.isSecret
    const isNeeded = required.includes(name) && field['default'] === undefined
    const inExample = isObject(example) ? example[name] : undefined
    return {
      name,
      description: typeof field['description'] === 'string' ? field['description'] : '',
      control,
      isNeeded,
      // The example of a kind has what an administrator usually gives.
      isFirst: isNeeded || (isObject(example) ? inExample !== undefined : isSecret),
      default: field['default'],
      mayBeEmpty: field['default'] !== undefined && !(Number(field['minItems']) > 0),
      example: isSecret ? undefined : exampleOf(control, inExample),
      isGuarded: 'x-guarded' in field,
      isUpstream: field['x-upstream'] === true,
    }
  })
}

function exampleOf(control: Control, value: unknown): string | undefined {
  if (value === undefined || !['text', 'number', 'lines', 'json'].includes(control.type)) return undefined
  const shown = showValue(control, value)
  return typeof shown === 'string' ? shown : undefined
}

function controlOf(field: Schema): Control {
  if (field['x-secret'] === true) return { type: 'text', isSecret: true, isLong: isLong(field) }
  const values = choicesOf(field)
  if (values !== undefined) return { type: 'choice', values }
  switch (field['type']) {
    case 'string':
      return { type: 'text', isSecret: false, isLong: isLong(field) }
    case 'integer':
    case 'number':
      return { type: 'number', isWhole: field['type'] === 'integer' }
    case 'boolean':
      return { type: 'switch' }
    case 'array':
      return listOf(isObject(field['items']) ? field['items'] : {})
    case 'object':
      return isObject(field['properties']) && field['patternProperties'] === undefined
        ? { type: 'group', fields: fieldsOf(field) }
        : { type: 'json' }
    default:
      return isTextOrTexts(field) ? { type: 'lines', mayBeOne: true } : { type: 'json' }
  }
}

function listOf(items: Schema): Control {
  const item = controlOf(items)
  if (item.type === 'choice' && item.values.every((one) => typeof one === 'string'))
    return { type: 'set', values: item.values as readonly string[] }
  if (item.type === 'text' && !item.isLong) return { type: 'lines', mayBeOne: false }
  return item.type === 'json' ? item : { type: 'list', item }
}

const isLong = ({ maxLength }: Schema) => typeof maxLength === 'number' && maxLength >= LONG_TEXT
const isText = (value: unknown) => isObject(value) && value['type'] === 'string'

function isTextOrTexts({ anyOf }: Schema): boolean {
  return (
    Array.isArray(anyOf) &&
    anyOf.length === 2 &&
    anyOf.some(isText) &&
    anyOf.some((one) => isObject(one) && one['type'] === 'array' && isText(one['items']))
  )
}

function choicesOf(field: Schema): readonly Choice[] | undefined {
  const { anyOf, oneOf, enum: list } = field
  const branches = Array.isArray(anyOf) ? anyOf : oneOf
  const all: unknown = Array.isArray(list)
    ? list
    : 'const' in field
      ? [field['const']]
      : Array.isArray(branches)
        ? branches.map((one) => (isObject(one) ? one['const'] : undefined))
        : undefined
  const isChoice = (one: unknown) => ['string', 'number', 'boolean'].includes(typeof one)
  return Array.isArray(all) && all.length > 0 && all.every(isChoice) ? all : undefined
}

/** The form with a configuration, or with the defaults. Secrets are never in it: an empty one stays as it is. */
export function showConfig(fields: readonly FormField[], config: Schema = {}): FormValues {
  return Object.fromEntries(
    fields.map((field) => {
      const value = config[field.name] === undefined ? field.default : config[field.name]
      const isSecret = field.control.type === 'text' && field.control.isSecret
      return [field.name, isSecret ? '' : showValue(field.control, value)]
    }),
  )
}

/** One more item of a list. */
export const emptyOf = (control: Control): FormValue => showValue(control, undefined)

function showValue(control: Control, value: unknown): FormValue {
  switch (control.type) {
    case 'switch':
      return value === true
    case 'set':
      return Array.isArray(value) ? value.map(String) : []
    case 'lines':
      return Array.isArray(value) ? value.join('\n') : String(value ?? '')
    case 'list':
      return Array.isArray(value) ? value.map((one) => showValue(control.item, one)) : []
    case 'group':
      return showConfig(control.fields, isObject(value) ? value : {})
    case 'json':
      return value === undefined ? '' : JSON.stringify(value, null, 2)
    default:
      return value === undefined || value === null ? '' : String(value)
  }
}

/** By the path of the field, `policies.0.name`: what is wrong with it. */
export type Faults = Readonly<Record<string, string>>
interface Read {
  readonly config: Record<string, unknown>
  readonly faults: Faults
}

/** What the form says. `kept`: secrets that are stored, which an empty field leaves as they are. */
export function readForm(
  fields: readonly FormField[],
  values: FormValues,
  { kept = [], at = '' }: { readonly kept?: readonly string[]; readonly at?: string } = {},
): Read {
  const config: Record<string, unknown> = {}
  const faults: Record<string, string> = {}
  for (const field of fields) {
    const path = `${at}${field.name}`
    const value = readValue(field.control, values[field.name] ?? '', path, faults, field)
    if (value !== undefined) config[field.name] = value
    else if (kept.includes(field.name)) config[field.name] = KEPT
    else if (field.isNeeded && faults[path] === undefined) faults[path] = 'This is needed.'
  }
  return { config, faults }
}

type Rules = Pick<FormField, 'default' | 'mayBeEmpty' | 'isNeeded'>
const ITEM: Rules = { default: undefined, mayBeEmpty: false, isNeeded: true }

function readValue(
  control: Control,
  value: FormValue,
  path: string,
  faults: Record<string, string>,
  rules: Rules,
): unknown {
  switch (control.type) {
    case 'switch':
      return value === true || rules.isNeeded || rules.default !== undefined ? value === true : undefined
    case 'choice':
      return control.values.find((one) => String(one) === value)
    case 'number':
      return readNumber(String(value).trim(), control.isWhole, path, faults)
    case 'json':
      return readJson(String(value).trim(), path, faults)
    case 'text':
      return readText(control, String(value))
    case 'group': {
      const read = readForm(control.fields, value as FormValues, { at: `${path}.` })
      if (!rules.isNeeded && Object.keys(read.config).length === 0) return undefined
      Object.assign(faults, read.faults)
      return read.config
    }
    default:
      return listed(readItems(control, value, path, faults), control, rules)
  }
}

type Several = Extract<Control, { readonly type: 'set' | 'lines' | 'list' }>

function readItems(
  control: Several,
  value: FormValue,
  path: string,
  faults: Record<string, string>,
): unknown[] {
  if (control.type === 'lines')
    return String(value)
      .split('\n')
      .map((one) => one.trim())
      .filter((one) => one !== '')
  if (!Array.isArray(value)) return []
  if (control.type === 'set') return control.values.filter((one) => value.includes(one))
  return value.map((one: FormValue, n) => {
    const item = readValue(control.item, one, `${path}.${n}`, faults, ITEM)
    if (item === undefined) faults[`${path}.${n}`] ??= 'This is needed.'
    return item
  })
}

function listed(items: unknown[], control: Several, { mayBeEmpty }: Rules): unknown {
  if (items.length === 0 && !mayBeEmpty) return undefined
  return control.type === 'lines' && control.mayBeOne && items.length === 1 ? items[0] : items
}

/** Spaces around a text come from pasting it, but may belong to a secret. One line in a large box has no line break at its end. */
function readText({ isSecret, isLong: isBox }: Extract<Control, { type: 'text' }>, text: string): unknown {
  const stripped = isBox ? text.replace(/[\r\n]+$/, '') : text
  const read = isBox && stripped.includes('\n') ? text : isSecret ? stripped : stripped.trim()
  return read === '' ? undefined : read
}

function readNumber(text: string, isWhole: boolean, path: string, faults: Record<string, string>): unknown {
  if (text === '') return undefined
  if ((isWhole ? /^-?\d{1,15}$/ : /^-?\d{1,15}(?:\.\d{1,15})?$/).test(text)) return Number(text)
  faults[path] = isWhole ? 'Write a whole number.' : 'Write a number.'
  return undefined
}

function readJson(text: string, path: string, faults: Record<string, string>): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    faults[path] = 'This is not valid JSON.'
    return undefined
  }
}

/** The configuration to show elsewhere, such as in a command: secrets that were entered are left out. */
export function withoutSecrets(fields: readonly FormField[], config: Schema): Record<string, unknown> {
  const secrets = new Set(
    fields.filter(({ control }) => control.type === 'text' && control.isSecret).map((one) => one.name),
  )
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, secrets.has(name) ? `<${name}>` : value]),
  )
}

/** The fields that an answer of the server names, such as `"databases/0" must be …`: the first one gets the focus. */
export function namedIn(message: string, fields: readonly FormField[]): readonly string[] {
  const named = [...message.matchAll(/"([a-z][a-z0-9_]*)(?:[/.][^"]*)?"/g)].map(([, name]) => name)
  return fields.map(({ name }) => name).filter((name) => named.includes(name))
}
