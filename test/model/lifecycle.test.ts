import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Credential } from '../../src/domain/credential.ts'
import { LONG } from '../support/long.ts'
import { startOwnPostgres, type TestPostgres } from '../support/postgres.ts'
import { commands, opening } from './commands.ts'
import { expectActive, expectRead } from './credential-commands.ts'
import { isAlive, isNear, type Model, newModel } from './model.ts'
import { openWorld, type World } from './world.ts'

/**
 * Compares random sequences of requests, admin actions, job runs, clock changes and restarts with a simple model, on
 * both stores and with a real PostgreSQL as upstream. MAYFLY_FUZZ_SEED sets the seed; MAYFLY_LONG=1 runs many more.
 */
const SEQUENCES = LONG ? 150 : 3
const LENGTH = LONG ? 100 : 70
const SEED = Number(process.env['MAYFLY_FUZZ_SEED'] ?? 20_261_121)

let server: TestPostgres
beforeAll(async () => {
  // Roles are global to a server, and every `mf_` role in this one must come from this test.
  server = await startOwnPostgres()
})
afterAll(() => server.stop())

describe.each(['sqlite', 'postgres'] as const)('the lifecycle of all resources on %s', (dialect) => {
  it(`agrees with the model in ${SEQUENCES} sequences`, { timeout: SEQUENCES * 30_000 }, async () => {
    let steps = 0
    let issued = 0
    const property = fc.asyncProperty(commands(LENGTH), async (drawn) => {
      const world = await openWorld(dialect, server)
      try {
        const model = newModel()
        for (const command of opening) await command.run(model, world)
        await fc.asyncModelRun(() => ({ model, real: world }), drawn)
        await expectInvariants(model, world)
        await expectCleanEnd(model, world)
        steps += [...drawn].length
        issued += model.credentials.length
      } finally {
        await world.close()
      }
    })
    await fc.assert(property, { numRuns: SEQUENCES, seed: SEED, endOnFailure: !LONG })
    console.log(
      `model: ${SEQUENCES} sequences, ${steps} commands, ${issued} credentials on ${dialect}, seed ${SEED}`,
    )
  })
})

async function expectInvariants(model: Model, world: World): Promise<void> {
  for (const one of model.credentials) await expectRead(one, world)
  for (const agent of model.agents) await expectActive(agent, model, world)
  await expectAgents(model, world)
  const rows = await world.credentials()
  expect(rows.map((row) => row.id).sort()).toEqual(model.credentials.map((one) => one.id).sort())
  await expectUpstream(rows, world)
  await expectAudit(model, rows, world)
  await expectNoSecrets(
    world,
    model.agents.map((one) => one.id),
  )
}

async function expectAgents(model: Model, world: World): Promise<void> {
  const now = world.now()
  const listed = new Set<string>(
    (await world.admin('GET', '/v1/admin/agents')).body.map((one: { id: string }) => one.id),
  )
  for (const agent of model.agents) {
    if (agent.deleted) expect(listed.has(agent.id)).toBe(false)
    else if (isAlive(agent, now) && !isNear(now, agent.expiresAt)) expect(listed.has(agent.id)).toBe(true)
  }
}

/** The upstream has exactly the recorded accounts. */
async function expectUpstream(rows: readonly Credential[], world: World): Promise<void> {
  const outstanding = rows.filter(
    (row) => row.revocation === 'exact' && ['pending', 'active', 'revoking'].includes(row.state),
  )
  expect(await world.roles()).toEqual(outstanding.map((row) => row.id.replace('cred_', 'mf_')).sort())
}

/** Each state change has exactly one audit entry, and there are no others. */
async function expectAudit(model: Model, rows: readonly Credential[], world: World): Promise<void> {
  const entries = await world.audit()
  const counted = new Map<string, number>()
  for (const { action, credentialId, agentId } of entries) {
    const about = action.startsWith('credential.') ? credentialId : action.startsWith('agent.') ? agentId : ''
    const key = `${action} ${about ?? ''}`
    if (action !== 'credential.issue_failed') counted.set(key, (counted.get(key) ?? 0) + 1)
  }
  for (const row of rows) {
    const expected = entriesOf(row)
    for (const action of ['requested', 'issued', 'revoked', 'expired', 'settled', 'revoke_failed'])
      expect([row.id, row.state, action, counted.get(`credential.${action} ${row.id}`) ?? 0]).toEqual([
        row.id,
        row.state,
        action,
        expected.includes(action) ? 1 : 0,
      ])
  }
  for (const agent of model.agents) {
    const ends = ['deleted', 'expired'].map((how) => counted.get(`agent.${how} ${agent.id}`) ?? 0)
    if (agent.deleted) expect(ends).toEqual([1, 0])
    else expect([0, 1]).toContain((ends[0] ?? 0) + (ends[1] ?? 0))
  }
  for (const [action, count] of Object.entries(model.done))
    expect([action, entries.filter((one) => one.action === action).length]).toEqual([action, count])
  expect(new Set(entries.map((one) => one.id)).size).toBe(entries.length)
}

function entriesOf(row: Credential): string[] {
  const begun = row.revocation === 'exact' ? ['requested', 'issued'] : ['issued']
  if (row.state === 'active') return begun
  const ended = row.endReason === 'expired' ? 'expired' : 'revoked'
  const settled = row.revocation === 'exact' && row.state !== 'revoking' ? ['settled'] : []
  return [...begun, ended, ...settled]
}

async function expectNoSecrets(world: World, known: readonly string[]): Promise<void> {
  const stolen = Object.entries(await world.stolen())
  // Finding the ids proves that the search covers the stored data.
  for (const id of known)
    expect(stolen.some(([place, text]) => place !== 'log' && text.includes(id))).toBe(true)
  expect(world.secrets.size).toBeGreaterThan(known.length)
  for (const [place, text] of stolen) {
    for (const secret of world.secrets)
      if (text.includes(secret)) throw new Error(`found a secret in ${place}: ${secret.slice(0, 12)}…`)
    expect([place, /PRIVATE KEY/.test(text)]).toEqual([place, false])
  }
}

/** After all backends are deleted, no upstream account and no due work remain. */
async function expectCleanEnd(model: Model, world: World): Promise<void> {
  for (const backend of model.backends)
    if (!backend.deleted)
      expect((await world.admin('DELETE', `/v1/admin/backends/${backend.name}?force=true`)).status).toBe(204)
  for (let round = 0; round < 3; round += 1) {
    world.advance(60_000)
    await world.sweep()
  }
  expect(await world.roles()).toEqual([])
  const rows = await world.credentials()
  expect(rows.filter((row) => row.dueAt !== null || !['revoked', 'expired'].includes(row.state))).toEqual([])
}
