import { describe, expect, test } from 'vitest'
import type { Run } from '../../src/domain/run.ts'
import { DIALECTS, newAgent, newBody, newSigningKey, T0 } from '../support/store.ts'
import { useStore } from '../support/use-store.ts'

describe.each(DIALECTS)('agents without secrets on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done } = opened

  test('keeps what an agent is bound to, and gives it one signing key later', async () => {
    const { store } = opened
    const id = `ag_${newBody()}`
    const agent = newAgent({
      id,
      bearerHash: id,
      clientSecretHash: '',
      signingKeyId: '',
      bounds: { maxTtlMs: 5 },
      identity: 'identity:ci',
      identityValues: ['https://issuer.test', 'ÄB 1'],
    })
    await done(...store.agents.insert(agent))
    expect(await store.agents.findByName(agent.name)).toEqual(agent)
    expect(await store.agents.signingKeyOf(id)).toBeUndefined()
    const [one, two] = [newSigningKey(id), { ...newSigningKey(id), keyId: `other ${id}` }]
    expect(await commit(store.agents.addSigningKey(agent, one))).toEqual({ done: true })
    expect(await commit(store.agents.addSigningKey(agent, two))).toMatchObject({ reason: 'rows' })
    expect(await store.agents.signingKeyOf(id)).toEqual(one)
    expect(await store.agents.findLiving(id)).toMatchObject({ signingKeyId: one.keyId, version: 2 })
  })

  test('follows its entry, unless it has changed since it was read', async () => {
    const { store } = opened
    const agent = newAgent({ expiresAt: T0 + 5 })
    await done(...store.agents.insert(agent))
    const rights = { scopes: ['a:b'], bounds: { maxTtlMs: 7 }, expiresAt: T0 + 9 }
    await done(...store.agents.follow(agent, rights))
    expect(await store.agents.findLiving(agent.id)).toEqual({ ...agent, ...rights, version: 2 })
    expect(await commit(store.agents.follow(agent, rights))).toMatchObject({ reason: 'rows' })
  })

  test('knows whether a login is the last one', async () => {
    const { store } = opened
    const agent = newAgent()
    const agentId = agent.id
    const login = { jti: newBody(), agentId }
    const other = { jti: newBody(), agentId }
    await done(
      ...store.agents.insert(agent),
      store.logins.insert({ ...login, expiresAt: T0 + 5, runId: null }),
    )
    expect(await store.logins.hasOther(login, T0)).toBe(false)
    expect(await commit([store.logins.requireOther(login, false, T0)])).toMatchObject({ reason: 'rows' })
    await done(store.logins.requireOther(login, true, T0))
    await done(store.logins.insert({ ...other, expiresAt: T0 + 5, runId: null }))
    expect(await store.logins.hasOther(login, T0)).toBe(true)
    expect(await commit([store.logins.requireOther(login, true, T0)])).toMatchObject({ reason: 'rows' })
    await done(store.logins.requireOther(login, false, T0))
    // One that has expired, or whose token was revoked, does not count.
    expect(await store.logins.hasOther(login, T0 + 5)).toBe(false)
    await done(store.tokens.revoke(other.jti, T0 + 5))
    expect(await store.logins.hasOther(login, T0)).toBe(false)
    await done(store.logins.drop(other.jti), store.logins.drop(other.jti))
    // Nor does one whose run has ended.
    const run: Run = {
      id: `run_${newBody()}`,
      agentId,
      agentName: agent.name,
      purpose: null,
      heartbeatMs: 1_000,
      version: 1,
      startedAt: T0,
      expiresAt: null,
      endedAt: null,
      reason: null,
      endedBy: null,
      lastBeat: null,
      ipAddress: null,
      userAgent: null,
    }
    await done(
      ...store.runs.insert(run),
      store.logins.insert({ jti: newBody(), agentId, expiresAt: T0 + 5, runId: run.id }),
    )
    expect(await store.logins.hasOther(login, T0)).toBe(true)
    const by = { actor: 'system', ipAddress: null, userAgent: null, authMethod: null, requestId: null }
    await done(...store.runs.endRuns([run.id], { reason: 'completed', endedAt: T0, now: T0, by }))
    expect(await store.logins.hasOther(login, T0)).toBe(false)
  })

  test('deletes logins whose token has expired', async () => {
    const { store } = opened
    const login = { jti: newBody(), agentId: `ag_${newBody()}`, expiresAt: T0 + 5, runId: null }
    await done(store.logins.insert(login))
    expect(await commit([store.logins.insert(login)])).toMatchObject({ reason: 'unique' })
    await done(...store.tokens.tidy(T0 + 4))
    expect(await commit([store.logins.insert(login)])).toMatchObject({ reason: 'unique' })
    expect(await store.tokens.isUntidy(T0 + 5)).toBe(true)
    await done(...store.tokens.tidy(T0 + 5))
    await done(store.logins.insert(login))
  })
})
