import { expect, test } from 'vitest'
import { commandLines, isNew, nextStep } from './guide.ts'

test('the guide goes from the first thing that is missing', () => {
  const none = { backend: null, agent: null, credential: null }
  expect(nextStep(none)).toBe('backend')
  expect(nextStep({ ...none, backend: 'demo' })).toBe('agent')
  // As after `npm start`.
  expect(nextStep({ ...none, backend: 'demo', agent: 'first-agent' })).toBe('credential')
  expect(nextStep({ backend: 'demo', agent: 'first-agent', credential: 'cred_1' })).toBeUndefined()
})

test('a server is new while one of the three is missing, and not while that is unknown', () => {
  expect(isNew({ backend: 'demo', agent: 'a', credential: null })).toBe(true)
  expect(isNew({ backend: 'demo', agent: 'a', credential: 'cred_1' })).toBe(false)
  expect(isNew({ backend: undefined, agent: null, credential: null })).toBeUndefined()
})

test('no line of the command holds a secret, and each is for this server or backend', () => {
  const lines = commandLines('https://mayfly.example.com', 'demo').map(({ text }) => text)
  expect(lines).toEqual([
    'export MAYFLY_SERVER=https://mayfly.example.com\nmayfly login',
    'mayfly get demo --ttl 10m',
    'mayfly run --backend demo -- ./my-program',
    'mayfly enroll --server https://mayfly.example.com --name my-agent --scope demo',
  ])
})
