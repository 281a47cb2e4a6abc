import { afterEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import { someCredential } from '../../../test/support/store.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { startRun } from '../runs/start-run.ts'
import { endOwnRun, endRun } from './end-run-now.ts'
import { issueCredential } from './issue-credential.ts'
import { revokeCredential } from './revoke-credential.ts'

let test: TestCore
afterEach(() => test.close())

/** An agent that may begin runs, with a backend that has no upstream and one that does as the script says. */
async function world(script: Script) {
  test = await testCore({}, [scriptedKind(script)])
  const { core } = test
  test.freeze()
  await createBackend(core, LOCAL, { type: 'jwt', name: 'orders', config: { audience: 'x' } }, false)
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const { agent, token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['orders', 'db'] })
  const actor = await test.actor(token)
  const start = async () => (await startRun(core, actor, {})).id
  const issue = (run: string, backend = 'orders') =>
    issueCredential(core, actor, { backend, run, scopes: ['read'] })
  return { core, agent, actor, start, issue }
}

it('is at the upstream before the reply', async () => {
  const revoked: unknown[] = []
  const { core, actor, start, issue } = await world({ revoke: async ({ id }) => void revoked.push(id) })
  for (const end of [(id: string) => endRun(core, LOCAL, id), (id: string) => endOwnRun(core, actor, id)]) {
    const id = await start()
    const issued = [await issue(id, 'db'), await issue(id, 'db'), await issue(id)]
    await end(id)
    expect(revoked.splice(0).sort()).toEqual(
      issued
        .slice(0, 2)
        .map((one) => one.id)
        .sort(),
    )
    for (const one of issued)
      expect(await core.store.credentials.find(one.id)).toMatchObject({
        state: 'revoked',
        settledAt: core.store.now(),
      })
  }
})

it('leaves a claimed one to the request, and what was issued meanwhile to the sweeper', async () => {
  const held = Promise.withResolvers<void>()
  const revoked: unknown[] = []
  const revoke = async ({ id }: { id?: unknown }) => {
    revoked.push(id)
    await held.promise
  }
  const { core, start, issue } = await world({ revoke })
  const { credentials, now } = core.store
  const id = await start()
  const early = await issue(id, 'db')
  const late = { id: '' }
  test.before(
    (change) => change.some((step) => step.op === 'run' && step.sql.includes('"ended_by"')),
    async () => void Object.assign(late, await issue(id, 'db')),
  )
  const began = performance.now()
  await endRun(core, LOCAL, id)
  expect(performance.now() - began).toBeGreaterThan(2_500)
  // Three seconds; whoever is waited for never answers.
  expect(performance.now() - began).toBeLessThan(30_000)
  expect(revoked).toEqual([early.id])
  const uid = (await credentials.find(early.id))?.backendUid ?? ''
  const due = async () => (await credentials.takeDue(uid, now(), now() + 1, 9)).map((one) => one.id)
  expect(await due()).toEqual([late.id])
  held.resolve()
  await expect.poll(async () => (await credentials.find(early.id))?.state).toBe('revoked')
})

it('ends nothing a second time that was revoked meanwhile', async () => {
  const revoked: unknown[] = []
  const { core, actor, start, issue } = await world({ revoke: async ({ id }) => void revoked.push(id) })
  const id = await start()
  const [one, other] = [await issue(id, 'db'), await issue(id, 'db')]
  test.before(
    (change) => change.some((step) => step.op === 'run' && step.sql.includes('"ended_by"')),
    () => revokeCredential(core, actor, one.id),
  )
  await endRun(core, LOCAL, id)
  expect(revoked).toEqual([one.id, other.id])
})

it('leaves those beyond 64 due, and a failed one for later', async () => {
  const { core, agent, start, issue } = await world({
    revoke: async () => Promise.reject(new Error('refused')),
  })
  const { credentials, now, commit } = core.store
  const id = await start()
  const issued = await issue(id, 'db')
  const { backendUid } = (await credentials.find(issued.id)) ?? {}
  const more = Array.from({ length: 70 }, () =>
    someCredential({
      agentId: agent.id,
      runId: id,
      backendUid: backendUid ?? '',
      expiresAt: now() + 60_000,
      dueAt: now() + 60_000,
    }),
  )
  await commit(more.map(credentials.insert))
  await endRun(core, LOCAL, id)
  const all = await Promise.all([issued, ...more].map((one) => credentials.find(one.id)))
  expect(all.filter((one) => one?.state === 'revoking')).toHaveLength(71)
  // At once: as many as an agent may have under way.
  expect(all.filter((one) => one?.attempts === 1)).toHaveLength(16)
  expect(all.filter((one) => Number(one?.dueAt) <= now())).toHaveLength(71 - 16)
})
