import { describe, expect, test } from 'vitest'
import { createOutput } from '../frame/output.ts'
import type { Context } from '../frame/verb.ts'
import { fieldsOf } from './fields.ts'
import { flagsOf, readGiven, shapeOf } from './flags.ts'
import { missingFields } from './questions.ts'

const { stdin, stdout, stderr } = process
const context: Context = {
  stdin,
  stdout,
  stderr,
  env: {},
  cwd: '/',
  home: '/',
  platform: process.platform,
  now: Date.now,
  signal: new AbortController().signal,
  globals: {},
  verbs: [],
  out: createOutput({ stdout, stderr, env: {} }, false),
}

/** A kind of a plugin: any JSON Schema at all. */
const SCHEMA = {
  type: 'object',
  required: ['app_id', 'mode', 'key'],
  properties: {
    app_id: { type: 'integer', description: 'App.' },
    mode: { enum: ['a', 'b'], default: 'a' },
    key: { type: 'string', 'x-secret': true, maxLength: 9000 },
    server: { type: 'string' },
    description: { type: 'string' },
    ratio: { type: 'number' },
    hosts: { type: 'array', items: { type: 'string' } },
    aud: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
    tls: { anyOf: [{ const: 'on' }, { const: 'off' }] },
    labels: { type: 'object' },
    rows: { type: 'array', items: { type: 'object' } },
    anything: true,
    deep: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    pem: { type: 'string', maxLength: 4096 },
    on: { type: 'boolean', default: true },
  },
}
const fields = fieldsOf(SCHEMA)
const given = (...argv: string[]) => readGiven(context, 'gh', fields, argv)

test('each field has the type of its schema', () => {
  expect(Object.fromEntries(fields.map(({ name, type }) => [name, type]))).toEqual({
    app_id: 'integer',
    mode: 'text',
    key: 'text',
    server: 'text',
    description: 'text',
    ratio: 'number',
    hosts: 'list',
    aud: 'text or list',
    tls: 'text',
    labels: 'json',
    rows: 'json',
    anything: 'json',
    deep: 'json',
    pem: 'text',
    on: 'boolean',
  })
  expect(missingFields(fields, {}).map(({ name }) => name)).toEqual(['app_id', 'key'])
  expect(missingFields(fields, { app_id: 0, key: '' })).toEqual([])
})

test('flags are unique, reserved names get the kind as a prefix, secrets have no plain flag', () => {
  const shapes = flagsOf('gh', fields).map(shapeOf)
  expect(shapes).toEqual([
    '--app-id <integer>',
    '--mode <a|b>',
    '--key-file <path>',
    '--gh-server <text>',
    '--gh-description <text>',
    '--ratio <number>',
    '--hosts <text>',
    '--aud <text>',
    '--tls <on|off>',
    '--labels <json>',
    '--rows <json>',
    '--anything <json>',
    '--deep <json>',
    '--pem <text>',
    '--pem-file <path>',
    '--[no-]on',
  ])
})

test('names that clash or do not suit a shell', () => {
  const odd = fieldsOf({
    properties: {
      a: { type: 'string', maxLength: 9999 },
      a_file: { type: 'string' },
      'x y$': { type: 'string' },
    },
  })
  const flags = flagsOf('k', odd).map(({ flag }) => flag)
  expect(new Set(flags).size).toBe(flags.length)
  expect(flags.join(' ')).toMatch(/^[a-z -]+$/)
})

test.each([{}, { properties: null }, { properties: [] }, { required: 'x', properties: { a: null } }])(
  'an invalid schema: %j',
  (schema) => {
    expect(() => flagsOf('k', fieldsOf(schema as Record<string, unknown>))).not.toThrow()
  },
)

describe('given values', () => {
  test('are converted by type, with the name anywhere', async () => {
    expect(
      await given(
        ...['--app-id', '7', '--ratio=0.5', '--hosts', 'a', 'name', '--hosts', 'b', '--aud', 'x', '--no-on'],
        ...['--labels', '{"a":[1]}', '--deep', '3', '--tls', 'off', '--gh-server', '-', '--pem', '--x'],
      ),
    ).toEqual({
      name: 'name',
      config: {
        app_id: 7,
        ratio: 0.5,
        hosts: ['a', 'b'],
        aud: 'x',
        on: false,
        labels: { a: [1] },
        deep: 3,
        tls: 'off',
        server: '-',
        pem: '--x',
      },
    })
  })

  test.each<[string[], RegExp]>([
    [['--app-id', '1e3'], /--app-id must be a whole number/],
    [['--app-id', ''], /--app-id must be a whole number/],
    [['--app-id', '99999999999999999999'], /--app-id must be a whole number/],
    [['--ratio', 'NaN'], /--ratio must be a number/],
    [['--mode', 'c'], /Allowed choices are a, b/],
    [['--labels', "{'a':1}"], /--labels is not valid JSON/],
    [['--key', 'sesame'], /--key is a secret/],
    [['--key=sesame'], /--key is a secret/],
    [['--pem', 'a', '--pem-file', '/dev/null'], /twice|is empty/],
    [['--app-id'], /--app-id needs a value/],
    [['a', 'b'], /too many arguments/i],
    [['--__proto__', 'x'], /unknown option/i],
  ])('wrong: %j', async (argv, message) => {
    const error = await given(...argv).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ exitCode: 2, message: expect.stringMatching(message) })
    expect(JSON.stringify(error) + (error as Error).message).not.toContain('sesame')
  })
})
