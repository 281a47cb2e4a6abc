import { describe, expect, it } from 'vitest'
import { createAgent } from '../../src/core/agents/create-agent.ts'
import { deleteAgent } from '../../src/core/agents/end-agent.ts'
import { expireEnrollments } from '../../src/core/enrollments/expire-enrollments.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { AS_LOCAL, LOCAL } from '../support/core.ts'
import { newEnrollee } from '../support/enrollee.ts'
import {
  call,
  code,
  decide,
  enroll,
  now,
  POLICIES,
  poll,
  RFC3339,
  test,
  useFreshCore,
} from '../support/enrollment.ts'
import { newEnrollment } from '../support/store.ts'

useFreshCore()

describe.each(['Ed25519', 'P-256'] as const)('an agent with a key on %s', (curve) => {
  it('enrolls, waits, is approved, and fetches its credentials, again if the reply was lost', async () => {
    const me = newEnrollee(curve)
    const asked = await enroll(me, { metadata: { host: 'laptop' } })
    const { id } = asked.json
    expect(asked.status).toBe(200)
    expect(asked.json).toEqual({
      id: expect.stringMatching(/^enr_[0-9a-z]{26}$/),
      enrollment_id: id,
      status: 'pending',
      poll_url: `https://mayfly.test/v1/enroll/${id}/status`,
      poll_interval_ms: 2_000,
      expires_at: expect.stringMatching(RFC3339),
      warnings: ['The scope "db:read" names no backend: there is none called "db".'],
    })
    const waiting = await poll(id, await me.prove(id, now()))
    expect([waiting.status, waiting.json.status, waiting.json.sealed]).toEqual([200, 'pending', undefined])

    const listed = await call('GET', '/v1/admin/pending', { headers: AS_LOCAL })
    expect(listed.json).toEqual([
      {
        id,
        name: 'bot',
        type: 'enroll',
        scopes: ['db:read'],
        public_key_fingerprint: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
        metadata: { host: 'laptop' },
        ip_address: expect.stringMatching(/^10\.1\./),
        created_at: expect.stringMatching(RFC3339),
        expires_at: asked.json.expires_at,
        status: 'pending',
        note: 'The policy "rest" leaves this name to an administrator.',
        warnings: ['The scope "db:read" names no backend: there is none called "db".'],
        difference: { added: [], present: [], impossible: ['db:read'] },
        may_approve: true,
      },
    ])
    const approved = await decide(id, 'approve', { note: 'known machine' })
    expect(approved.status).toBe(200)
    expect(approved.json).toMatchObject({
      id,
      status: 'approved',
      decided_by: 'local',
      decision_note: 'known machine',
    })

    const proof = await me.prove(id, now())
    const lost = await poll(id, proof)
    const answer = await me.open(lost.json.sealed, proof)
    expect(Object.keys(answer).sort()).toEqual(
      ['agent_id', 'agent_name', 'oidc', 'scopes', 'signing_email', 'signing_key_id', 'token'].sort(),
    )
    const second = await me.prove(id, now())
    expect(await me.open((await poll(id, second)).json.sealed, second)).toEqual(answer)
    await expect(me.open(lost.json.sealed, second)).rejects.toThrow()

    const self = await call('GET', '/v1/status', { token: answer.token })
    expect(self.json).toMatchObject({ id: answer.agent_id, name: 'bot', scopes: ['db:read'] })
    const row = await test.core.store.agents.findLiving(answer.agent_id)
    expect(row).toMatchObject({ clientId: answer.oidc.client_id, signingKeyId: answer.signing_key_id })
    expect(test.core.hasher.matches(answer.oidc.client_secret, row?.clientSecretHash ?? '')).toBe(true)
    expect(answer.signing_email).toBe('bot@mayfly.test')

    const open = [asked, waiting, listed, approved, lost].map((reply) => reply.text).join('')
    for (const text of [open, test.logged(), JSON.stringify(await test.audit())]) {
      expect(text).not.toMatch(/ck[rs]_[0-9a-f]/)
      expect(text).not.toContain(answer.oidc.client_secret)
    }
  })
})

describe('asking', () => {
  const me = newEnrollee()
  const good = { name: 'bot', public_key: me.publicKey }
  const rows: [string, object | string][] = [
    ['no body', ''],
    ['an array', [good]],
    ['an unknown field', { ...good, admin: true }],
    ['no name', { public_key: me.publicKey }],
    ['a name that is a number', { ...good, name: 1 }],
    ['a name with a slash', { ...good, name: 'a/b' }],
    ['no key', { name: 'bot' }],
    ['a key as text', { ...good, public_key: JSON.stringify(me.publicKey) }],
    ['a private key', { ...good, public_key: me.privateKey.export({ format: 'jwk' }) }],
    ['scopes as text', { ...good, scopes: 'db:read' }],
    ['a scope with a space', { ...good, scopes: ['db read'] }],
    ['metadata as an array', { ...good, metadata: [] }],
    [
      'metadata of 65 keys',
      { ...good, metadata: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, 1])) },
    ],
    ['metadata over 8 KiB', { ...good, metadata: { a: 'é'.repeat(4_096) } }],
    ['a duplicate key', `{"name":"a","name":"b","public_key":${JSON.stringify(me.publicKey)}}`],
  ]
  it('is refused in a wrong form, and nothing is stored', async () => {
    for (const [what, body] of rows) {
      const reply = await call('POST', '/v1/enroll', { body })
      expect([what, reply.status, code(reply)]).toEqual([what, 400, 'invalid_request'])
    }
    expect(await test.core.store.enrollments.list(undefined, undefined, 1)).toEqual([])
  })

  it('gets the same answer for a free, taken or reserved name, with a note to the administrator', async () => {
    await createAgent(test.core, LOCAL, { name: 'taken' })
    const replies = []
    for (const name of ['free', 'Taken', 'admin']) replies.push(await enroll(me, { name }))
    const [free, ...others] = replies.map(({ status, json }) => ({
      status,
      keys: Object.keys(json),
      state: json.status,
    }))
    for (const other of others) expect(other).toEqual(free)
    expect(replies.map((reply) => reply.text).join('')).not.toMatch(/taken|exists|reserved|note/i)
    for (const { json } of replies) {
      const seen = await poll(json.id, await me.prove(json.id, now()))
      expect(Object.keys(seen.json)).toEqual(['id', 'status', 'poll_interval_ms', 'expires_at'])
    }
    const pending = await call('GET', '/v1/admin/pending', { headers: AS_LOCAL })
    expect(pending.json.map((one: { note: string }) => one.note)).toEqual([
      expect.not.stringMatching(/exists|reserved/),
      expect.stringContaining('already exists'),
      expect.stringContaining('reserved'),
    ])
    const refused = await decide(replies[1]?.json.id, 'approve')
    expect([refused.status, code(refused)]).toEqual([409, 'conflict'])
  })

  it('is limited to ten times a minute from one address', async () => {
    test.freeze()
    const from = '192.0.2.7'
    const statuses = []
    for (let count = 0; count < 10; count += 1)
      statuses.push((await call('POST', '/v1/enroll', { body: good, from })).status)
    expect(statuses).toEqual(Array(10).fill(200))
    const refused = await call('POST', '/v1/enroll', { body: good, from })
    expect([refused.status, code(refused), refused.headers['retry-after']]).toEqual([
      429,
      'rate_limited',
      '6',
    ])
    expect((await call('POST', '/v1/enroll', { body: good, from: '192.0.2.8' })).status).toBe(200)
    test.advance(6_000)
    expect((await call('POST', '/v1/enroll', { body: good, from })).status).toBe(200)
  })

  it('is refused while 1,000 enrollments are pending', async () => {
    const rows = Array.from({ length: 999 }, (_, n) =>
      newEnrollment({ expiresAt: now() + DAY_MS, ipAddress: `10.0.${n % 250}.1` }),
    )
    await test.core.store.commit(rows.map((row) => test.core.store.enrollments.insert(row)))
    expect((await enroll(me)).status).toBe(200)
    const refused = await enroll(newEnrollee())
    expect([refused.status, code(refused)]).toEqual([429, 'rate_limited'])
    expect(refused.headers['retry-after']).toBe('60')
    expect((await enroll(me, { name: 'ci-1' })).json.status).toBe('approved')
  })
})

describe('a key that asks again, because the reply was lost', () => {
  it('gets its pending enrollment, also when it asks twice at once', async () => {
    const me = newEnrollee()
    const replies = await Promise.all([enroll(me), enroll(me), enroll(me, { name: 'BOT' })])
    expect(new Set(replies.map((reply) => reply.json.id)).size).toBe(1)
    expect((await test.core.store.enrollments.list('pending', undefined, 10)).length).toBe(1)
  })

  it('gets its approved enrollment until the answer is erased', async () => {
    const me = newEnrollee()
    const first = await enroll(me, { name: 'ci-1' })
    const again = await enroll(me, { name: 'ci-1' })
    expect(again.json).toMatchObject({ id: first.json.id, status: 'approved' })
    const proof = await me.prove(again.json.id, now())
    expect((await me.open((await poll(again.json.id, proof)).json.sealed, proof)).token).toMatch(/^ckr_/)
    expect((await enroll(me, { name: 'ci-1' })).json.id).toBe(first.json.id)
    test.advance(11 * MINUTE_MS)
    await test.core.store.commit([test.core.store.enrollments.eraseAnswers(now())])
    const other = await enroll(me, { name: 'ci-1' })
    expect(other.json.status).toBe('approved')
    expect(other.json.id).not.toBe(first.json.id)
    expect((await test.core.store.agents.list(undefined, 100)).map(({ name }) => name)).toContainEqual(
      expect.stringMatching(/^ci-1-[0-9a-z]{8}$/),
    )
  })

  it.each([
    ['for another name', { name: 'other' }],
    ['for other scopes', { scopes: ['db:write'] }],
  ])('gets a new enrollment %s', async (_, more) => {
    const me = newEnrollee()
    const first = await enroll(me)
    expect((await enroll(me, more)).json.id).not.toBe(first.json.id)
    expect((await enroll(newEnrollee())).json.id).not.toBe(first.json.id)
  })

  it.each([
    ['has collected its answer', true],
    ['has not', false],
  ])('starts again once its agent has ended, whether it %s', async (_, collected) => {
    const me = newEnrollee()
    const { id } = (await enroll(me, { name: 'ci-1' })).json
    if (collected) await poll(id, await me.prove(id, now()))
    await deleteAgent(test.core, LOCAL, 'ci-1')
    const again = await enroll(me, { name: 'ci-1' })
    expect(again.json).toMatchObject({ status: 'approved', id: expect.not.stringMatching(id) })
    const proof = await me.prove(again.json.id, now())
    const { token } = await me.open((await poll(again.json.id, proof)).json.sealed, proof)
    expect((await call('GET', '/v1/status', { token })).status).toBe(200)
    const old = (await poll(id, await me.prove(id, now()))).json
    expect([old.status, old.sealed]).toEqual([collected ? 'approved' : 'expired', undefined])
    expect((await test.core.store.enrollments.find(id))?.sealedAnswer).toBeNull()
    await expireEnrollments(test.core, now())
    expect((await test.audit('enrollment.expired')).length).toBe(collected ? 0 : 1)
  })

  it('gets a new enrollment after a rejection', async () => {
    const me = newEnrollee()
    const first = await enroll(me)
    await decide(first.json.id, 'reject')
    expect((await enroll(me)).json).toMatchObject({
      status: 'pending',
      id: expect.not.stringMatching(first.json.id),
    })
  })
})

describe('a policy', () => {
  it('approves at once, with everything an approved agent gets', async () => {
    const me = newEnrollee()
    const asked = await enroll(me, { name: 'ci-1' })
    expect(asked.json.status).toBe('approved')
    const proof = await me.prove(asked.json.id, now())
    const answer = await me.open((await poll(asked.json.id, proof)).json.sealed, proof)
    expect(answer.scopes).toEqual(['db:read'])
    const self = (await call('GET', '/v1/status', { token: answer.token })).json
    expect(Date.parse(self.expires_at) - Date.parse(self.created_at)).toBe(1.5 * HOUR_MS)
    const approved = await call('GET', '/v1/admin/pending?status=approved', { headers: AS_LOCAL })
    expect(approved.json).toMatchObject([
      { name: 'ci-1', decided_by: 'system', agent_id: answer.agent_id, expires_in: '1h30m' },
    ])
  })

  it('leaves scopes that it does not give to the administrator', async () => {
    const me = newEnrollee()
    for (const scopes of [['db:write'], ['log:secret'], ['log:*'], ['admin:*'], ['*']])
      expect((await enroll(me, { name: 'ci-1', scopes })).json.status).toBe('pending')
  })

  it('is listed as it is configured', async () => {
    const reply = await call('GET', '/v1/admin/policies', { headers: AS_LOCAL })
    expect(reply.json).toEqual([
      { ...POLICIES[0], max_agent_lifetime: '1h30m' },
      { ...POLICIES[1], auto_approve: false, deny: [] },
    ])
  })
})
