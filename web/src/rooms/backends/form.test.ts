import { expect, test } from 'vitest'
import { emptyOf, fieldsOf, namedIn, readForm, showConfig, withoutSecrets } from './form.ts'

const object = (properties: object, rest: object = {}) => fieldsOf({ type: 'object', properties, ...rest })

test('a plugin may nest objects and lists; both are filled by their own fields', () => {
  const fields = object(
    {
      limits: {
        type: 'object',
        properties: { most: { type: 'integer' }, unit: { enum: ['minute', 'hour'] } },
        required: ['most'],
      },
      ports: { type: 'array', items: { type: 'integer' } },
    },
    { required: ['limits'] },
  )
  const config = { limits: { most: 3, unit: 'hour' }, ports: [80, 443] }
  expect(readForm(fields, showConfig(fields, config))).toEqual({ config, faults: {} })
  expect(readForm(fields, showConfig(fields)).faults).toEqual({ 'limits.most': 'This is needed.' })
  const ports = fields[1]?.control
  expect(ports?.type === 'list' && emptyOf(ports.item)).toBe('')
})

test('numbers and JSON that cannot be read are faults of their field, and nothing is sent for them', () => {
  const fields = object({ n: { type: 'integer' }, x: { type: 'number' }, free: { type: 'object' } })
  for (const n of ['1.5', '1e3', '0x10', 'NaN', '９', '1 2', '9'.repeat(16)])
    expect(readForm(fields, { n, x: '1.5', free: '{"a":1}' })).toEqual({
      config: { x: 1.5, free: { a: 1 } },
      faults: { n: 'Write a whole number.' },
    })
  expect(readForm(fields, { n: ' 12 ', x: '', free: '{' })).toEqual({
    config: { n: 12 },
    faults: { free: 'This is not valid JSON.' },
  })
})

test('an optional part is left out when nothing of it was entered', () => {
  const fields = object({
    part: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    on: { type: 'boolean' },
    off: { type: 'boolean', default: true },
  })
  expect(readForm(fields, { part: { a: '' }, on: false, off: false })).toEqual({
    config: { off: false },
    faults: {},
  })
})

test('a list that is empty by default may be emptied; another one is then left out', () => {
  const items = { type: 'string' }
  const fields = object({
    groups: { type: 'array', items, default: ['a'] },
    names: { type: 'array', items, default: ['a'], minItems: 1 },
  })
  expect(readForm(fields, { groups: ' \n', names: '' }).config).toEqual({ groups: [] })
})

test('keys keep their lines, a token loses the line break that was pasted with it, and a password nothing', () => {
  const fields = object({
    key: { type: 'string', maxLength: 4_096, 'x-secret': true },
    password: { type: 'string', 'x-secret': true },
    host: { type: 'string' },
  })
  const pem = '-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n'
  expect(readForm(fields, { key: pem, password: ' a ', host: ' db ' }).config).toEqual({
    key: pem,
    password: ' a ',
    host: 'db',
  })
  expect(readForm(fields, { key: 'glpat-1\r\n' }).config).toEqual({ key: 'glpat-1' })
})

test('a secret that the server shows as hidden is not in the form, and stays when nothing is entered', () => {
  const fields = object({ token: { type: 'string', 'x-secret': true } }, { required: ['token'] })
  const shown = showConfig(fields, { token: '[redacted]' })
  expect(shown).toEqual({ token: '' })
  expect(readForm(fields, shown, { kept: ['token'] })).toEqual({
    config: { token: '[redacted]' },
    faults: {},
  })
  expect(withoutSecrets(fields, { token: 'real' })).toEqual({ token: '<token>' })
})

test('a schema that is broken or unknown is still a form', () => {
  expect(fieldsOf({})).toEqual([])
  const [field] = object({ odd: { anyOf: [{ type: 'null' }, { type: 'object' }] } })
  expect(field?.control.type).toBe('json')
  const [other] = object({ odd: null })
  expect(other?.control.type).toBe('json')
})

test('the fields that an answer names', () => {
  const fields = object({ host: {}, databases: {}, tls: {} })
  expect(
    namedIn('The configuration is not valid. "databases/0" must match; "host" is required', fields),
  ).toEqual(['host', 'databases'])
  expect(namedIn('"__proto__" "hosts" nothing', fields)).toEqual([])
})
