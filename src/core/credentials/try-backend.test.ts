import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import type { Kind } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { createSweeper } from '../../jobs/sweep.ts'
import { createAgent } from '../agents/create-agent.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { enterUpstream } from '../backends/call-upstream.ts'
import { createBackend } from '../backends/configure-backend.ts'
import type { Settings } from '../context.ts'
import { askBackend } from './ask-backend.ts'
import { tryBackend } from './try-backend.ts'

let test: TestCore
afterEach(() => test.close())

async function world(
  script: Script,
  { settings = {}, more = {} }: { settings?: Partial<Settings>; more?: Partial<Kind> } = {},
) {
  test = await testCore(settings, [{ ...scriptedKind(script), ...more } as Kind])
  await createBackend(test.core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  return test.core
}

const tryDb = (scopes: readonly string[] = ['a:read']) => tryBackend(test.core, LOCAL, 'db', scopes)
const stepsOf = ({ steps }: Awaited<ReturnType<typeof tryDb>>) =>
  steps.map(({ name, error }) => (error === undefined ? name : `${name}: ${error}`))
const actions = async () => (await test.audit()).map(({ action }) => action).slice(1)
const SECRET = `ckr_${'7c'.repeat(24)}`
const refuse = (message = 'It said no.', detail = `no, ${SECRET}`) =>
  Promise.reject(new BackendError('denied', message, { detail }))

async function sweepOnce(): Promise<void> {
  const sweeper = createSweeper(test.core)
  await sweeper.sweep(new AbortController().signal)
  await sweeper.idle()
}

describe('tryBackend', () => {
  it('issues and revokes, for the one who asks', async () => {
    const accounts = new Set<unknown>()
    let asked: unknown
    await world({
      issue: async ({ credentialId, agent, scopes }) => {
        asked = { agent, scopes }
        accounts.add(credentialId)
        return undefined
      },
      revoke: async ({ id }) => accounts.delete(id),
    })
    const tried = await tryDb()
    expect(stepsOf(tried)).toEqual(['check', 'issue', 'revoke'])
    expect(tried).toMatchObject({ isEnded: true, credential: { state: 'revoked', agentId: 'local' } })
    expect(asked).toEqual({ agent: { id: 'local', name: 'local' }, scopes: ['a:read'] })
    expect(accounts.size).toBe(0)
    expect(await actions()).toEqual([
      'credential.requested',
      'credential.issued',
      'credential.revoked',
      'credential.settled',
      'backend.tried',
    ])
  })

  it('tells the kind a name that it can write, where the one who asks has an e-mail address', async () => {
    let told: unknown
    await world({
      issue: async ({ agent }) => {
        told = agent
        return undefined
      },
    })
    const [backend] = (await test.core.backends.at(await test.core.store.generation())).byName.values()
    if (backend === undefined) throw new Error('no backend')
    const holder = {
      agentId: 'op_06dzs4k8v2n6x1c9t5q7m3w0hd',
      agentName: 'x|y@example.com',
      policy: null,
      bounds: {},
    }
    const now = test.core.store.now()
    const plan = {
      id: 'cred_x',
      scopes: [],
      leftOut: [],
      ttlMs: 1,
      now,
      expiresAt: now + 1,
      params: {},
      claim: undefined,
      run: undefined,
    }
    const attempt = { actor: LOCAL, holder, command: { backend: 'db' }, backend, plan, isRecorded: false }
    await askBackend(test.core, attempt, enterUpstream(backend, 'issuing'))
    expect(told).toEqual({ id: holder.agentId, name: holder.agentId })
  })

  it('says why the upstream refused, in closed codes, and its words without secrets to full administrators', async () => {
    await world({ issue: () => refuse() })
    const tried = await tryDb()
    expect(stepsOf(tried)).toEqual(['check', 'issue: permission_missing'])
    expect(tried.steps[1]?.detail).toBe('It said no.: no, ckr_[redacted]')
    expect(tried).toMatchObject({ isEnded: true, credential: { state: 'failed' } })
    expect((await test.audit('backend.tried'))[0]?.facts).toEqual({
      ended: true,
      failed: 'issue',
      reason: 'permission_missing',
    })
    const { token } = await createAgent(test.core, LOCAL, { name: 'some', scopes: ['admin:backends:write'] })
    const { steps } = await tryBackend(test.core, await test.actor(token), 'db', ['a:read'])
    expect(steps[1]).toEqual({ name: 'issue', ms: expect.any(Number), error: 'permission_missing' })
    expect(JSON.stringify(await test.audit())).not.toContain(SECRET)
  })

  it('shows everybody what blames the request', async () => {
    await world({ issue: () => Promise.reject(new BackendError('unsupported', 'There is no table "a".')) })
    const { token } = await createAgent(test.core, LOCAL, { name: 'some', scopes: ['admin:backends:write'] })
    const { steps } = await tryBackend(test.core, await test.actor(token), 'db', ['a:read'])
    expect(steps[1]).toMatchObject({ error: 'misconfigured', detail: 'There is no table "a".' })
  })

  it('is answered where the upstream hangs while it issues, and what it may have made is ended', async () => {
    const ended: unknown[] = []
    await world(
      {
        issue: async (_request, signal) => void (await once(signal, 'abort')),
        revoke: async ({ id }) => ended.push(id),
      },
      { settings: { upstreamTimeoutMs: 100 } },
    )
    const tried = await tryDb()
    expect(stepsOf(tried)).toEqual(['check', 'issue: timeout'])
    expect(tried).toMatchObject({
      isEnded: false,
      credential: { state: 'revoking', endReason: 'interrupted' },
    })
    await sweepOnce()
    expect(ended).toEqual([tried.credential?.id])
  })

  it('is answered where the upstream hangs while it revokes', async () => {
    await world(
      { revoke: async (_handle, signal) => once(signal, 'abort') },
      { settings: { upstreamTimeoutMs: 100 } },
    )
    const tried = await tryDb()
    expect(stepsOf(tried)).toEqual(['check', 'issue', 'revoke: timeout'])
    expect(tried).toMatchObject({ isEnded: false, credential: { state: 'revoking', endReason: 'revoked' } })
  })

  it('says that the upstream refuses to revoke; the sweeper ends it when that is over', async () => {
    let isBroken = true
    await world({ revoke: async () => (isBroken ? refuse() : undefined) })
    const tried = await tryDb()
    expect(stepsOf(tried)).toEqual(['check', 'issue', 'revoke: permission_missing'])
    expect(tried).toMatchObject({ isEnded: false, credential: { state: 'revoking', attempts: 1 } })
    expect((await test.audit('backend.tried'))[0]?.facts).toMatchObject({ ended: false, failed: 'revoke' })
    isBroken = false
    test.advance(60_000)
    await sweepOnce()
    expect(await test.core.store.credentials.find(tried.credential?.id ?? '')).toMatchObject({
      state: 'revoked',
    })
  })

  it('says that a kind cannot revoke, and ends the record all the same', async () => {
    await world({}, { more: { revocation: 'expiry_only' } })
    const tried = await tryDb()
    expect(stepsOf(tried)).toEqual(['check', 'issue'])
    expect(tried).toMatchObject({ isEnded: false, credential: { state: 'revoked', endReason: 'revoked' } })
  })

  it('issues for the shortest time of the kind where that is longer than a minute', async () => {
    await world({}, { more: { limits: { minTtlMs: 900_000 } } })
    expect((await tryDb()).credential?.ttlMs).toBe(900_000)
  })

  it('issues nothing where the check fails', async () => {
    const kind = scriptedKind({})
    const open: Kind['open'] = async (config, host) =>
      ({
        ...(await kind.open(config, host)),
        check: () => refuse('Mayfly’s role lacks CREATEROLE.'),
      }) as never
    await world({}, { more: { open } })
    const tried = await tryDb()
    expect(tried).toMatchObject({ credential: undefined, isEnded: true })
    expect(tried.steps).toMatchObject([
      { name: 'check', error: 'permission_missing', detail: expect.stringContaining('lacks CREATEROLE') },
    ])
    expect(await actions()).toEqual(['backend.tried'])
  })

  it('ends the credential also when the caller ends in between', async () => {
    const ended: unknown[] = []
    await world({ revoke: async ({ id }) => ended.push(id) })
    const { token } = await createAgent(test.core, LOCAL, { name: 'some', scopes: ['admin:backends:write'] })
    const actor = await test.actor(token)
    test.before(
      (change) =>
        change.some(
          (step) =>
            step.op === 'insert' && step.table === 'audit' && step.row.action === 'credential.revoked',
        ),
      () => deleteAgent(test.core, LOCAL, 'some'),
    )
    const tried = await tryBackend(test.core, actor, 'db', ['a:read'])
    await sweepOnce()
    expect(ended).toContain(tried.credential?.id)
    expect(await test.audit('backend.tried')).toHaveLength(1)
  })

  it('asks for scopes where no example fits', async () => {
    await world({})
    await expect(tryBackend(test.core, LOCAL, 'db', undefined)).rejects.toThrow('Name the scopes to try')
  })
})
