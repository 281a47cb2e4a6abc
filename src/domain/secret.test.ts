import { format, inspect } from 'node:util'
import { expect, test } from 'vitest'
import { Secret } from './secret.ts'

const VALUE = 'plain-words-nobody-recognises'

test('only reveal returns the value', () => {
  expect(new Secret(VALUE).reveal()).toBe(VALUE)
})

test.each<[string, (secret: Secret) => unknown]>([
  ['template', (secret) => `${secret}`],
  ['String', (secret) => String(secret)],
  ['concatenation', (secret) => `x${secret.toString()}`],
  ['JSON', (secret) => JSON.stringify({ secret, list: [secret] })],
  ['inspect', (secret) => inspect(secret, { showHidden: true, depth: null })],
  ['inspect inside', (secret) => inspect({ a: [{ secret }] }, { depth: null })],
  ['format', (secret) => format('%s %o %O %j %d', secret, secret, secret, secret, secret)],
  ['keys', (secret) => JSON.stringify([Object.entries(secret), Reflect.ownKeys(secret), { ...secret }])],
  ['clone', (secret) => inspect(structuredClone(secret))],
  ['error', (secret) => inspect(new Error(`failed with ${secret}`, { cause: secret }))],
])('%s does not', (_, show) => {
  expect(String(show(new Secret(VALUE)))).not.toContain('nobody')
})
