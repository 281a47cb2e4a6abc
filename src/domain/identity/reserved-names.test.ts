import { expect, test } from 'vitest'
import type { Identity, Platform } from './identity.ts'
import { reservedBy } from './reserved-names.ts'
import { expandAgentName, parseTemplate } from './template.ts'

const identity = (name: string, agent: string, concurrent: Identity['concurrent'] = 'share') =>
  ({ name, agent: parseTemplate(agent), concurrent }) as Identity

const trusted = {
  identities: [
    identity('fixed', 'Deployer'),
    identity('many', 'batch', 'suffix'),
    identity('jobs', 'ci-{run_id}'),
    identity('both', 'a-{x}-b-{y}-c'),
    identity('twins', 'z-{x}{y}'),
  ],
  platforms: [{ name: 'Hosted' } as Platform],
}

test.each([
  ['Deployer', 'fixed'],
  ['deployer', 'fixed'],
  ['deployer2', undefined],
  ['deployer-abc123', undefined],
  ['batch', 'many'],
  ['batch-abc123', 'many'],
  ['BATCH-ABC123', 'many'],
  ['batch-abc12', undefined],
  ['batch-abc_12', undefined],
  ['ci-1', 'jobs'],
  ['CI-x', 'jobs'],
  ['ci-', undefined],
  ['ci', undefined],
  ['xci-1', undefined],
  ['a-1-b-2-c', 'both'],
  ['a-b-b-b-c', 'both'],
  ['a--b-b-c', undefined],
  ['a-1-b--c', undefined],
  ['a-1-b-2', undefined],
  ['a-1-b-2-cc', undefined],
  ['a-1-b-2-c-c', 'both'],
  ['z-1', undefined],
  ['z-12', 'twins'],
  ['hosted-x', 'Hosted'],
  ['hosted', undefined],
  ['hosted2-x', undefined],
])('%s is the name of %s', (name, entry) => {
  expect(reservedBy(trusted, name)).toBe(entry)
})

test('every name that a template gives is reserved', () => {
  for (const [text, claims] of [
    ['ci-{a}', { a: '-' }],
    ['a-{a}-b-{b}-c', { a: '-b-', b: '-c' }],
    ['a-{a}-b-{b}-c', { a: 'b-b', b: 'c-c' }],
    ['{a}-x', { a: '1-x' }],
  ] as const) {
    const entry = identity('e', text)
    const { name } = expandAgentName(entry.agent, claims)
    expect(reservedBy({ identities: [entry], platforms: [] }, name), name).toBe('e')
  }
})
