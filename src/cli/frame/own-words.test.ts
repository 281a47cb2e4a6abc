import { describe, expect, test } from 'vitest'
import { flag, many, off, text } from './options.ts'
import { inOwnWords } from './own-words.ts'
import { defineVerb } from './verb.ts'

const verb = defineVerb({
  description: 'Does it.',
  arguments: [{ name: '<name>', description: 'a name' }],
  options: {
    expiresIn: text('<duration>', 'how long'),
    scope: many('<scope>', 'what'),
    force: flag('all the same'),
    noCheck: off('untried'),
  },
  examples: { 'mayfly do it': 'it' },
  run: async () => {},
})

describe('what a server says, in the words of the terminal', () => {
  test.each([
    ['"expires_in" must be positive.', '--expires-in must be positive.'],
    ['"expires_in" in the body must be string.', '--expires-in must be string.'],
    ['"scopes.0" in the body does not have the required form.', '--scope does not have the required form.'],
    ['"name" in the body must be string.', 'The argument "name" must be string.'],
    ['Revoke them, or add ?force=true.', 'Revoke them, or add --force.'],
    ['Fix it, or add ?check=false to store it untried.', 'Fix it, or add --no-check to store it untried.'],
  ])('%s', (message, words) => {
    expect(inOwnWords(message, verb)).toBe(words)
  })

  test.each([
    '"config.host" in the body must be string.',
    '"public_key" must be an Ed25519 key.',
    'The backend "expires in" is unknown.',
    'Add ?force=false or ?check=true.',
    'There is no such agent.',
  ])('names that the command does not have stay: %s', (message) => {
    expect(inOwnWords(message, verb)).toBe(message)
  })
})
