import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change, Outcome, Step } from '../../src/store/engine/change.ts'
import { run } from '../../src/store/engine/run.ts'
import { agentRow, DIALECTS, openTestStore, type TestStore } from '../support/store.ts'

/** What changes may do to a small world: three agents with versions, and proofs that may be used once. */
type Move =
  | { op: 'guard'; agent: number; version: number }
  | { op: 'touch'; agent: number }
  | { op: 'end'; agent: number }
  | { op: 'use'; proof: number }
  | { op: 'drop'; proof: number }
  | { op: 'invalidate' }

const AGENTS = [0, 1, 2]
const agent = fc.constantFrom(...AGENTS)
const proof = fc.integer({ min: 0, max: 4 })
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('guard'), agent, version: fc.constantFrom(1, 1, 1, 2) }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('touch'), agent }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('end'), agent }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('use'), proof }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('drop'), proof }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('invalidate') }) },
) as fc.Arbitrary<Move>
const moves = fc.array(move, { minLength: 1, maxLength: 4 })
/** Guards first, as core writes them: on PostgreSQL these go together in one statement. */
const issueLike = moves.map((some) =>
  [...some.filter((one) => one.op === 'guard'), ...some.filter((one) => one.op === 'use')].concat({
    op: 'use',
    proof: 0,
  }),
)
const change = fc.oneof(moves, issueLike)

interface World {
  agents: Map<number, { version: number; ended: boolean }>
  proofs: Set<number>
}

function newWorld(): World {
  return { agents: new Map(AGENTS.map((n) => [n, { version: 1, ended: false }])), proofs: new Set() }
}

function refusal(world: World, one: Move): 'guard' | 'rows' | 'unique' | undefined {
  const found = 'agent' in one ? world.agents.get(one.agent) : undefined
  switch (one.op) {
    case 'guard':
      return found?.ended === false && found.version === one.version ? undefined : 'guard'
    case 'touch':
    case 'end':
      if (found === undefined || found.ended) return 'rows'
      found.version += 1
      found.ended = one.op === 'end'
      return undefined
    case 'use':
      if (world.proofs.has(one.proof)) return 'unique'
      world.proofs.add(one.proof)
      return undefined
    case 'drop':
      return world.proofs.delete(one.proof) ? undefined : 'rows'
    case 'invalidate':
      return undefined
  }
}

/** The world after, and the outcome: the model of `commit`. */
function apply(world: World, some: readonly Move[]): [World, Outcome] {
  const next = structuredClone(world)
  for (const [step, one] of some.entries()) {
    const reason = refusal(next, one)
    if (reason !== undefined) return [world, { done: false, step, reason }]
  }
  return [next, { done: true }]
}

function* ordersOf(items: readonly number[]): Generator<number[]> {
  if (items.length === 0) yield []
  for (const item of items) {
    for (const rest of ordersOf(items.filter((one) => one !== item))) yield [item, ...rest]
  }
}

/** Whether doing them one after another in some order gives just these outcomes and this world. */
function isExplained(start: World, batch: Move[][], outcomes: Outcome[], end: World): boolean {
  for (const order of ordersOf(batch.keys().toArray())) {
    let world = start
    const fits = order.every((n) => {
      const [next, outcome] = apply(world, batch[n] ?? [])
      world = next
      return JSON.stringify(outcome) === JSON.stringify(outcomes[n])
    })
    if (fits && JSON.stringify(flat(world)) === JSON.stringify(flat(end))) return true
  }
  return false
}

const flat = (world: World) => [[...world.agents], [...world.proofs].sort()]

describe.each(DIALECTS)('changes on %s', (dialect) => {
  let opened: TestStore
  let runs = 0
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  async function enter() {
    runs += 1
    const prefix = `w${runs}-`
    const { engine, store } = opened
    const agents = AGENTS.map((n) => agentRow({ id: `${prefix}${n}` }))
    await store.commit(agents.map((row): Step => ({ op: 'insert', table: 'agents', row })))
    const id = (n: number) => `${prefix}${n}`
    const stepOf = (one: Move): Step | undefined => {
      switch (one.op) {
        case 'guard':
          return { op: 'guard', table: 'agents', id: id(one.agent), version: one.version }
        case 'touch':
          return store.agents.touch(id(one.agent))[0]
        case 'end':
          return store.agents.end(id(one.agent), 'deleted', 1)[0]
        case 'use':
          return { op: 'insert', table: 'used_proofs', row: { id: id(one.proof), expires_at: 1 } }
        case 'drop':
          return run(engine.build.deleteFrom('used_proofs').where('id', '=', id(one.proof)), 1)
        case 'invalidate':
          return { op: 'invalidate' }
      }
    }
    const steps = (some: readonly Move[]): Change => some.map(stepOf).filter((step) => step !== undefined)
    const look = async (): Promise<World> => {
      const rows = await engine.read(
        engine.build
          .selectFrom('agents')
          .select(['id', 'version', 'ended_at'])
          .where('id', 'like', `${prefix}%`)
          .orderBy('id'),
      )
      const proofs = await engine.read(
        engine.build.selectFrom('used_proofs').select('id').where('id', 'like', `${prefix}%`),
      )
      const at = (id: string) => Number(id.slice(prefix.length))
      return {
        agents: new Map(
          rows.map((row) => {
            const { id, version, ended_at } = row as { id: string; version: number; ended_at: number | null }
            return [at(id), { version, ended: ended_at !== null }]
          }),
        ),
        proofs: new Set(proofs.map((row) => at((row as { id: string }).id))),
      }
    }
    return { commit: (some: readonly Move[]) => store.commit(steps(some)), look }
  }

  test('one after another, changes match the model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 6 }), async (history) => {
        const real = await enter()
        let world = newWorld()
        for (const some of history) {
          const [next, outcome] = apply(world, some)
          expect(await real.commit(some)).toEqual(outcome)
          world = next
        }
        expect(flat(await real.look())).toEqual(flat(world))
      }),
      { numRuns: 60 },
    )
  })

  test('all at once, some order of the changes explains every outcome and every row', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 5 }), async (batch) => {
        const real = await enter()
        const outcomes = await Promise.all(batch.map(real.commit))
        const end = await real.look()
        expect(isExplained(newWorld(), batch, outcomes, end)).toBe(true)
        if (dialect === 'sqlite') {
          let world = newWorld()
          for (const [n, some] of batch.entries()) {
            const [next, outcome] = apply(world, some)
            expect(outcomes[n]).toEqual(outcome)
            world = next
          }
        }
      }),
      { numRuns: 120 },
    )
    expect(opened.engine.stats.largestBatch).toBeGreaterThan(1)
  })
})
