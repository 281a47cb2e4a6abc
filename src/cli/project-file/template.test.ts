import { expect, test } from 'vitest'
import type { HeldCredential } from '../session/held-credential.ts'
import { fieldsOf, fill, isLasting, parseKindTemplate, parseTemplate } from './template.ts'

const credential = (fields?: Record<string, string | number>): HeldCredential => ({
  id: 'cred_1',
  backend: 'db',
  scopes: [],
  token: 'the token',
  created_at: '',
  expires_at: '2030-01-01T00:00:00.000Z',
  ttl: '10m',
  ...(fields === undefined ? {} : { fields }),
})

test.each([
  ['{host}:{port}', 'db.example:5432'],
  ['{secret}', 'the token'],
  ['{token}', 'the token'],
  ['verify-full', 'verify-full'],
  ['', ''],
  ['{"server": "{host}", "n": {}}', '{"server": "db.example", "n": {}}'],
  ['{{host}}', '{db.example}'],
  ['{ host }$ {host}{1}', '{ host }$ db.example{1}'],
])('a kind writes %j', (text, filled) => {
  expect(fill(parseKindTemplate(text), credential({ host: 'db.example', port: 5432 }))).toBe(filled)
})

test('a field named secret is that field', () => {
  expect(fill(parseKindTemplate('{secret}'), credential({ secret: 'its own' }))).toBe('its own')
})

test.each([
  'two\nlines',
  '"quoted" \'twice\'',
  '$HOME $(id) `id`',
  '{host}',
  '{{token}}',
  '$&$1',
  'a\\nb',
  'é\u0000',
])('neither form reads or changes the value %j', (value) => {
  const held = credential({ password: value, host: 'other' })
  expect(fill(parseKindTemplate('<{password}>'), held)).toBe(`<${value}>`)
  expect(fill(parseTemplate('<{{password}}>') ?? { parts: [] }, held)).toBe(`<${value}>`)
})

test('a project file names a field or holds text with fields', () => {
  expect(parseTemplate('password')).toEqual({ parts: [{ field: 'password' }] })
  expect(parseTemplate('{{ host }}:{{port}}!')).toEqual({
    parts: [{ field: 'host' }, { text: ':' }, { field: 'port' }, { text: '!' }],
  })
  for (const text of ['', 'no field', '{{}}', '{{a b}}', '{host}'])
    expect(parseTemplate(text)).toBeUndefined()
})

test('knows the fields of a template, and whether a renewed credential changes it', () => {
  expect(fieldsOf(parseKindTemplate('{host}:{port} {x'))).toEqual(['host', 'port'])
  expect(isLasting(parseKindTemplate('https://{host}:{port}'))).toBe(true)
  expect(isLasting(parseKindTemplate('{password}'))).toBe(false)
})

test('throws for a field that the credential lacks, also one that every object has', () => {
  for (const field of ['password', '__proto__', 'constructor', 'toString'])
    expect(() => fill(parseKindTemplate(`{${field}}`), credential({ host: 'h' }))).toThrow(/has no field/)
})
