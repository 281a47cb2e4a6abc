import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { compilePolicies, type PolicyEntry } from '../../config/policies.ts'
import { createAgent } from '../agents/create-agent.ts'
import { type EnrollCommand, enroll } from './enroll.ts'

const { publicKey } = newEnrollee()
const HOUR = 3_600_000
let test: TestCore
let addresses = 0

async function start(entries: PolicyEntry[] = [], settings = {}): Promise<void> {
  const policies = compilePolicies(entries, (fault) => {
    throw fault
  })
  test = await testCore({ policies, ...settings })
}

/** Each from its own network, so that only the policies limit them. */
function ask(name: string, more: Partial<EnrollCommand> = {}) {
  addresses += 1
  return enroll(
    test.core,
    { name, public_key: publicKey, ...more },
    { ...ORIGIN, ipAddress: `10.0.${addresses}.1` },
  )
}

afterEach(() => test.close())

describe('policies', () => {
  const ci: PolicyEntry = {
    name: 'ci',
    pattern: 'ci-*',
    scopes: ['db:read', 'github:o/*'],
    auto_approve: true,
  }
  const first: PolicyEntry = { name: 'special', pattern: 'ci-special', scopes: ['x:y'], auto_approve: false }

  const rows: [string, PolicyEntry[], string, string[] | undefined, string, string[] | RegExp][] = [
    [
      'gives its own scopes when none are requested',
      [ci],
      'ci-1',
      undefined,
      'approved',
      ['db:read', 'github:o/*'],
    ],
    ['gives no more than was requested', [ci], 'ci-1', ['github:o/r:read'], 'approved', ['github:o/r:read']],
    ['gives nothing when an empty list is requested', [ci], 'ci-1', [], 'approved', []],
    ['matches names ignoring case', [ci], 'CI-1', undefined, 'approved', ['db:read', 'github:o/*']],
    ['matches the whole name', [ci], 'xci-1', undefined, 'pending', /No policy/],
    [
      'does not give more scopes than it has',
      [ci],
      'ci-1',
      ['db:read', 'db:write'],
      'pending',
      /does not grant/,
    ],
    ['does not read a prefix as a scope', [ci], 'ci-1', ['db'], 'pending', /does not grant/],
    [
      'decides when it is the first that matches',
      [first, ci],
      'ci-special',
      undefined,
      'pending',
      /"special" leaves/,
    ],
    [
      'does not decide after another that matches',
      [ci, first],
      'ci-special',
      undefined,
      'approved',
      ci.scopes,
    ],
    ['denies', [{ ...ci, deny: ['github:o/secret'] }], 'ci-1', ['github:o/secret:read'], 'pending', /denies/],
    [
      'denies a scope that includes a denied one',
      [{ ...ci, deny: ['github:o/secret'] }],
      'ci-1',
      ['github:o/*'],
      'pending',
      /denies/,
    ],
    [
      'gives a scope beside a denied one',
      [{ ...ci, deny: ['github:o/secret'] }],
      'ci-1',
      ['github:o/r'],
      'approved',
      ['github:o/r'],
    ],
    [
      'never gives an admin scope for a star',
      [{ ...ci, scopes: ['*'] }],
      'ci-1',
      ['admin:*'],
      'pending',
      /[Aa]dmin/,
    ],
    [
      'never gives a part of admin',
      [{ ...ci, scopes: ['*'] }],
      'ci-1',
      ['admin:agents:read'],
      'pending',
      /[Aa]dmin/,
    ],
    ['never gives admin itself', [{ ...ci, scopes: ['*'] }], 'ci-1', ['admin'], 'pending', /[Aa]dmin/],
  ]

  it.each(rows)('%s', async (_what, entries, name, scopes, status, result) => {
    await start(entries)
    const row = await ask(name, { scopes })
    expect(row.status).toBe(status)
    const agent = await test.core.store.agents.findByName(row.name)
    if (result instanceof RegExp) {
      expect(row.note).toMatch(result)
      expect(agent).toBeUndefined()
      expect(row.sealedAnswer).toBeNull()
    } else {
      expect(row.scopes).toEqual(result)
      expect(agent?.scopes).toEqual(result)
      expect(agent?.policy).toBe('ci')
    }
  })

  it('never gives an admin scope, even when the configuration check was skipped', async () => {
    const pattern = {
      name: 'p',
      pattern: '*',
      matches: () => true,
      scopes: ['admin:*'],
      autoApprove: true,
      deny: [],
    }
    test = await testCore({ policies: [pattern] })
    expect((await ask('a')).status).toBe('pending')
  })

  it('records the three steps of an approval and the properties of the agent', async () => {
    await start([{ ...ci, max_agent_lifetime: '1h' }])
    const row = await ask('ci-1', { metadata: { run: 7 } })
    const agent = await test.core.store.agents.findByName('ci-1')
    expect(agent).toMatchObject({
      id: row.agentId,
      createdBy: 'system',
    })
    expect(agent?.publicJwk).toEqual(publicKey)
    expect((agent?.expiresAt ?? 0) - (agent?.createdAt ?? 0)).toBe(HOUR)
    const entries = (await test.audit()).filter((one) => one.action !== 'auth.failed')
    expect(entries.map((one) => [one.action, one.actor])).toEqual([
      ['enrollment.requested', 'system'],
      ['enrollment.approved', 'system'],
      ['agent.created', 'system'],
    ])
    expect(entries.map((one) => one.facts['policy'])).toEqual(['ci', 'ci', 'ci'])
    expect(entries[0]?.metadata).toEqual({ run: 7 })
    expect(JSON.stringify([entries, row])).not.toMatch(/ck[rs]_/)
  })

  it('admits no more living agents than max_agents, also when many enroll at once', async () => {
    await start([{ ...ci, max_agents: 2 }])
    const asked = await Promise.all(['ci-1', 'ci-2', 'ci-3', 'ci-4', 'ci-5'].map((name) => ask(name)))
    expect(asked.map((row) => row.status).sort()).toEqual([
      'approved',
      'approved',
      'pending',
      'pending',
      'pending',
    ])
    expect(asked.find((row) => row.status === 'pending')?.note).toMatch(/maximum number of agents/)
    expect(await test.core.store.agents.countByPolicy('ci')).toBe(2)
  })

  it('approves no more often than its rate allows', async () => {
    await start([{ ...ci, rate: '2/hour' }])
    const statuses = []
    for (const name of ['ci-1', 'ci-2', 'ci-3']) statuses.push((await ask(name)).status)
    expect(statuses).toEqual(['approved', 'approved', 'pending'])
    test.advance(HOUR / 2)
    expect((await ask('ci-4')).status).toBe('approved')
  })

  it('leaves the enrollment pending when its name is taken just before the commit', async () => {
    await start([ci])
    test.before(
      (change) => change.some((step) => step.op === 'insert' && step.table === 'enrollments'),
      () => createAgent(test.core, LOCAL, { name: 'CI-1' }, ORIGIN),
    )
    const row = await ask('ci-1')
    expect(row).toMatchObject({
      status: 'pending',
      note: 'An agent with this name already exists.',
      sealedAnswer: null,
    })
    expect((await test.audit('agent.created')).length).toBe(1)
  })

  it('leaves a name that gives no valid signing e-mail to the administrator', async () => {
    await start([ci], { signingDomain: `${'d'.repeat(60)}.${'d'.repeat(60)}.${'d'.repeat(20)}` })
    const row = await ask(`ci-${'x'.repeat(125)}`)
    expect(row).toMatchObject({ status: 'pending', note: expect.stringContaining('e-mail') })
  })

  it('proposes the scopes of the policy to the administrator when none were requested', async () => {
    await start([{ ...ci, auto_approve: false }])
    expect((await ask('ci-1')).scopes).toEqual(ci.scopes)
  })
})

describe('names', () => {
  beforeEach(() => start())

  it.each(['admin', 'OpenID', 'local', 'system', 'Mayfly'])(
    'leaves the reserved name %s pending, with a note',
    async (name) => {
      expect(await ask(name)).toMatchObject({ status: 'pending', note: expect.stringContaining('reserved') })
    },
  )

  it('leaves a taken name pending, with a note', async () => {
    await createAgent(test.core, LOCAL, { name: 'Bot' }, ORIGIN)
    expect(await ask('bot')).toMatchObject({
      status: 'pending',
      note: expect.stringContaining('already exists'),
    })
  })

  it.each(['', ' ', 'a b', '-a', '.a', 'a'.repeat(129), 'ü', 'a/b', 'a\n', 'a\0'])(
    'refuses %j as a name',
    async (name) => {
      await expect(ask(name)).rejects.toMatchObject({ code: 'invalid_request' })
    },
  )
})

describe('form', () => {
  beforeEach(() => start())

  it.each([
    ['a scope with a space', { scopes: ['a b'] }],
    ['an empty scope', { scopes: [''] }],
    ['a star inside', { scopes: ['a*b'] }],
    ['too many scopes', { scopes: Array.from({ length: 65 }, (_, n) => `a:${n}`) }],
    ['no key', { public_key: null }],
    ['a private key', { public_key: { ...publicKey, d: 'AAAA' } }],
    ['a key off the curve', { public_key: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } }],
    ['an encryption key', { public_key: { ...publicKey, crv: 'X25519' } }],
  ])('refuses %s and stores nothing', async (_what, more) => {
    await expect(ask('a', more)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await test.core.store.enrollments.list(undefined, undefined, 10)).toEqual([])
  })
})

describe('limits', () => {
  it('allow ten enrollments a minute from one address, without limiting others', async () => {
    await start()
    test.freeze()
    const from = (ipAddress: string) =>
      enroll(test.core, { name: 'a', public_key: publicKey }, { ...ORIGIN, ipAddress })
    for (let count = 0; count < 10; count += 1) await from('192.0.2.9')
    await expect(from('192.0.2.9')).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 6 })
    await from('192.0.2.10')
    test.advance(6_000)
    await from('192.0.2.9')
  })

  it('bound the number of pending enrollments, while a policy still admits agents', async () => {
    await start([{ name: 'ci', pattern: 'ci-*', scopes: ['a:b'], auto_approve: true }], {
      maxPendingEnrollments: 2,
    })
    await ask('a')
    await ask('b')
    await expect(ask('c')).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 60 })
    expect((await ask('ci-1')).status).toBe('approved')
  })
})
