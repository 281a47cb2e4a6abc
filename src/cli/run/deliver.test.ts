import { expect, test } from 'vitest'
import { parseTemplate } from '../project-file/template.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { isRenewable, secretsOf } from './deliver.ts'

test('takes every field for a secret except those that say where to connect, and as whom', () => {
  const fields = { host: 'db', port: 5432, username: 'u1', password: 'p1', certificate: 'c1' }
  expect(secretsOf({ token: 't1', fields } as unknown as HeldCredential)).toEqual([
    ['token', 't1'],
    ['password', 'p1'],
    ['certificate', 'c1'],
  ])
})

test.each([
  ['host', true],
  ['{{host}}:{{port}}', true],
  ['username', false],
  ['certificate', false],
])('a variable with %s allows the files to be renewed: %s', (text, renewable) => {
  const value = parseTemplate(text) ?? { parts: [] }
  const content = { parts: [{ field: 'password' }] }
  const requested = {
    name: 'db',
    request: { backend: 'db' },
    isSpread: false,
    env: [{ variable: 'A', value }],
    files: [{ variable: 'B', fileName: 'B', content }],
  }
  expect(isRenewable(requested)).toBe(renewable)
})
