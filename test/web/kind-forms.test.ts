import type { TObject } from 'typebox'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/backends/config-fields.ts'
import { kinds } from '../../src/backends/index.ts'
import {
  type Control,
  type FormField,
  fieldsOfKind,
  KEPT,
  readForm,
  showConfig,
} from '../../web/src/rooms/backends/form.ts'

/** As `GET /v1/admin/kinds` shows it. */
const overTheWire = (schema: TObject) => JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
const formOf = (kind: (typeof kinds)[number]) => fieldsOfKind({ config: overTheWire(kind.config) })
const isSecret = ({ control }: FormField) => control.type === 'text' && control.isSecret
const exampleOf = (kind: (typeof kinds)[number]) =>
  (Reflect.get(kind.config, 'examples') as Record<string, unknown>[])[0] ?? {}

/** The form as a person fills it: each secret is typed. */
function filled(fields: readonly FormField[], config: Record<string, unknown>) {
  const secrets = fields.filter(isSecret).filter(({ name }) => config[name] !== undefined)
  return {
    ...showConfig(fields, config),
    ...Object.fromEntries(secrets.map(({ name }) => [name, String(config[name])])),
  }
}

function namesOf(control: Control): string {
  if (control.type === 'list') return `list of ${namesOf(control.item)}`
  if (control.type === 'lines' && control.mayBeOne) return 'lines or one text'
  if (control.type === 'text' && control.isSecret) return 'secret'
  return control.type
}

describe.each(kinds.map((kind) => [kind.type, kind] as const))('the form of %s', (_, kind) => {
  const fields = formOf(kind)

  test('has every field of the schema, and one kind of control for each', () => {
    expect(fields.map(({ name }) => name)).toEqual(Object.keys(kind.config.properties))
    expect(fields.every(({ description }) => description !== '')).toBe(true)
  })

  test('says what the example of the kind says, and the server takes it', () => {
    const { config, faults } = readForm(fields, filled(fields, exampleOf(kind)))
    expect(faults).toEqual({})
    expect(config).toEqual(expect.objectContaining(exampleOf(kind)))
    expect(readConfig(kind.config, config).faults).toEqual([])
    expect(readConfig(kind.config, config).config).toEqual(readConfig(kind.config, exampleOf(kind)).config)
  })

  test('reads back every field, whatever it holds', () => {
    const every = Object.fromEntries(
      Object.entries(kind.config.properties).map(([name, schema]) => [name, sampleOf(schema)]),
    )
    const { config, faults } = readForm(fields, filled(fields, every))
    expect(faults).toEqual({})
    expect(config).toEqual(every)
  })

  test('keeps the secrets that are stored, and asks for those that are needed', () => {
    const secrets = fields.filter(isSecret).map(({ name }) => name)
    const stored = { ...exampleOf(kind), ...Object.fromEntries(secrets.map((name) => [name, KEPT])) }
    const shown = showConfig(fields, stored)
    expect(secrets.map((name) => shown[name])).toEqual(secrets.map(() => ''))
    expect(readForm(fields, shown, { kept: secrets }).config).toEqual(expect.objectContaining(stored))
    const needed = fields.filter(({ isNeeded }) => isNeeded).map(({ name }) => name)
    expect(Object.keys(readForm(fields, showConfig(fields)).faults)).toEqual(needed)
  })
})

/** A value that the schema permits as to its type; lengths and patterns are the server's. */
function sampleOf(schema: object): unknown {
  const field = JSON.parse(JSON.stringify(schema)) as Record<string, never>
  if ('x-secret' in field) return 'a secret: "quoted", and $HOME'
  if (field['anyOf'] !== undefined)
    return (field['anyOf'] as { const?: unknown }[]).at(-1)?.const ?? ['a', 'b']
  if (field['type'] === 'array') {
    const items = field['items'] as unknown as Record<string, unknown>
    return items['type'] === 'object' || 'anyOf' in items ? [sampleOf(items)] : ['cn=one two,dc=b', 'x/y:z']
  }
  if (field['type'] === 'object' && field['properties'] !== undefined)
    return Object.fromEntries(
      Object.entries(field['properties']).map(([name, one]) => [name, sampleOf(one as object)]),
    )
  return { string: 'text', integer: 7, number: 1.5, boolean: true, object: { a: [1] } }[String(field['type'])]
}

test('only free claims are entered as JSON', () => {
  const used = kinds.flatMap((kind) =>
    formOf(kind).map(({ name, control }) => ({ field: `${kind.type}.${name}`, control: namesOf(control) })),
  )
  expect(used.filter(({ control }) => control === 'json').map(({ field }) => field)).toEqual(['jwt.claims'])
  expect(new Set(used.map(({ control }) => control))).toEqual(
    new Set([
      'text',
      'secret',
      'number',
      'switch',
      'choice',
      'set',
      'lines',
      'lines or one text',
      'list of group',
      'list of text',
      'json',
    ]),
  )
})

test('what one must give stands first, and its secret beside it', () => {
  const first = (type: string) =>
    formOf(kinds.find((kind) => kind.type === type)!)
      .filter(({ isFirst }) => isFirst)
      .map(({ name }) => name)
  expect(first('postgres')).toEqual(['host', 'database', 'username', 'password', 'tls'])
  expect(first('github')).toEqual(['app_id', 'private_key', 'owner'])
})
