import { describe, expect, test } from 'vitest'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { ConfigError } from '../domain/fault.ts'
import { decideAdmission } from '../domain/policy.ts'
import { loadConfig } from './load.ts'
import { compilePattern } from './policies.ts'

async function load(yaml: string) {
  const { config } = await loadConfig({
    argv: { config: 'm.yaml' },
    env: {},
    readFile: async () => Buffer.from(yaml),
  })
  return config.policies
}

const GOOD = `policies:
  - name: ci
    pattern: 'ci-*'
    scopes: ['github:acme/*']
    deny: ['github:acme/vault']
    auto_approve: true
    max_agent_lifetime: 24h
    max_ttl: 1h
    max_agents: 50
    rate: 10/hour
  - name: rest
    pattern: '*'
    scopes: []
`

test('compiles a policy with every key', async () => {
  const [ci, rest] = await load(GOOD)
  expect(ci).toMatchObject({
    name: 'ci',
    pattern: 'ci-*',
    scopes: ['github:acme/*'],
    deny: ['github:acme/vault'],
    autoApprove: true,
    maxAgentLifetimeMs: 86_400_000,
    maxTtlMs: 3_600_000,
    maxAgents: 50,
    rate: { count: 10, perMs: 3_600_000 },
  })
  expect(rest).toMatchObject({ autoApprove: false, maxTtlMs: undefined, deny: [] })
})

test('applies the first policy that matches', async () => {
  const policies = await load(GOOD)
  expect(decideAdmission(policies, { name: 'CI-1', scopes: ['github:acme/app'] })).toMatchObject({
    decision: 'approve',
    lifetimeMs: 86_400_000,
  })
  expect(decideAdmission(policies, { name: 'other', scopes: undefined })).toMatchObject({
    decision: 'wait',
    policy: { name: 'rest' },
  })
})

describe('globs', () => {
  test.each<[string, string[], string[]]>([
    ['ci-*', ['ci-', 'ci-1', 'CI-x', 'ci-.x', 'ci-a.b'], ['ci', 'xci-1', 'c-1']],
    ['*', ['a', '0.x'], []],
    ['a?c', ['abc', 'a.c'], ['ac', 'abbc']],
    ['[a-c]x', ['ax', 'Bx'], ['dx', 'x']],
    ['[^a]x', ['bx'], ['ax']],
    ['{dev,test}-*', ['dev-1', 'test-'], ['prod-1', 'dev']],
    ['a.c', ['a.c'], ['abc']],
    ['exact', ['exact', 'EXACT'], ['exactly', 'inexact', 'exact\n', '\nexact', 'x\nexact']],
    ['prod-**', ['prod-a'], ['prod']],
  ])('%s', (pattern, yes, no) => {
    const matches = compilePattern(pattern)
    for (const name of yes) expect(matches(name), name).toBe(true)
    for (const name of no) expect(matches(name), name).toBe(false)
  })
  test.each([
    '!ci',
    '!(a)',
    '(a+)+b',
    '+(a)',
    'a/b',
    'a\\*',
    '^$|',
    'a b',
    '',
    '[',
    ']',
    '[z-a]',
    '{',
    '}',
    '{a',
    'a}',
    '*a*b*c*d*',
    'a\n',
    'ä*',
    '@(a|b)',
    '[!a]',
  ])('refuses %j', (pattern) => expect(() => compilePattern(pattern)).toThrow())
  test('matches the worst pattern against the worst name quickly', async () => {
    const spent = await cpuMsOf(() => {
      for (const pattern of ['*a*a*a*b', '{a*,aa*}{a*,aa*}b', '[a]*[a]*[a]*[a]*b', '????*?*?*?*b']) {
        expect(compilePattern(pattern)('a'.repeat(128))).toBe(false)
      }
    })
    expect(spent).toBeLessThan(2_000)
  })
})

describe('faults, each with its line and reason', () => {
  const policy = (lines: string) =>
    `policies:\n  - name: ci\n    pattern: 'ci-*'\n    scopes: [db]\n    auto_approve: true\n${lines}`
  test.each<[string, string, string, RegExp]>([
    [
      'pattern',
      `policies:\n  - name: a\n    pattern: '['\n    scopes: []\n`,
      'm.yaml:3:14',
      /policies\.0\.pattern: "\[" is not a glob: Missing closing/,
    ],
    [
      'scope',
      `policies:\n  - name: a\n    pattern: a\n    scopes:\n      - db\n      - 'x y'\n`,
      'm.yaml:6:9',
      /"x y" is not a scope/,
    ],
    [
      'admin',
      `policies:\n  - name: a\n    pattern: a\n    auto_approve: true\n    scopes: [db, 'admin:*']\n`,
      'm.yaml:5:18',
      /admin scope/,
    ],
    ['deny', policy(`    deny: ['**']\n`), 'm.yaml:6:12', /"\*\*" is not a scope/],
    ['granted and denied', policy(`    deny: [db]\n`), 'm.yaml:6:11', /both granted and denied/],
    ['max_ttl', policy('    max_ttl: 1 hour\n'), 'm.yaml:6:14', /"1 hour" is not a duration/],
    ['max_agent_lifetime', policy('    max_agent_lifetime: -1h\n'), 'm.yaml:6:25', /is not a duration/],
    ['rate', policy('    rate: 10/fortnight\n'), 'm.yaml:6:11', /is not a rate/],
    ['max_agents', policy('    max_agents: 0\n'), 'm.yaml:6:17', /policies\.0\.max_agents must be >= 1/],
    ['type', policy('    max_ttl: 60\n'), 'm.yaml:6:14', /max_ttl must be of type string/],
    [
      'unknown key',
      policy('    max_agent: 5\n'),
      'm.yaml:6:5',
      /"policies\.0\.max_agent" is not a setting \(did you mean "max_agents"\?\)/,
    ],
    [
      'auto_approve',
      `policies:\n  - {name: a, pattern: a, scopes: [db], auto_approve: yes}\n`,
      'm.yaml:2:55',
      /must be true or false/,
    ],
    [
      'nothing to give',
      `policies:\n  - {name: a, pattern: a, scopes: [], auto_approve: true}\n`,
      'm.yaml:2:35',
      /is empty/,
    ],
    ['lacking', `policies:\n  - name: a\n`, 'm.yaml:2:5', /requires pattern, scopes/],
    [
      'name',
      `policies:\n  - {name: 'a b', pattern: a, scopes: []}\n`,
      'm.yaml:2:12',
      /is not 1 to 128 letters/,
    ],
    [
      'twice',
      `policies:\n  - {name: a, pattern: a, scopes: []}\n  - {name: A, pattern: b, scopes: []}\n`,
      'm.yaml:3:12',
      /another policy/,
    ],
    ['not a list', 'policies: {}', 'm.yaml:1:11', /must be of type array/],
  ])('%s', async (_, yaml, source, message) => {
    const error = await load(yaml).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as ConfigError).faults).toEqual([{ source, message: expect.stringMatching(message) }])
  })
  test('are reported for all policies at once', async () => {
    const error = await load(
      `policies:\n  - {name: a, pattern: '[', scopes: ['']}\n  - {name: b, pattern: b, scopes: [], rate: x}\n`,
    ).catch((thrown: unknown) => thrown)
    expect((error as ConfigError).faults.map(({ source }) => source)).toEqual([
      'm.yaml:2:24',
      'm.yaml:2:38',
      'm.yaml:3:45',
    ])
  })
  test('allows an admin scope in a policy that does not approve by itself', async () => {
    await load(`policies:\n  - {name: a, pattern: a, scopes: ['admin:*']}\n`)
  })
})
