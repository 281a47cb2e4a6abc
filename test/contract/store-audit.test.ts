import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AuditEntry } from '../../src/domain/audit-entry.ts'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import type { Engine } from '../../src/store/engine/engine.ts'
import { createAudit } from '../../src/store/tables/audit/audit.ts'
import type { AuditFilter } from '../../src/store/tables/audit/filter.ts'
import { DIALECTS, newBody, newEntry, openTestStore, T0, type TestStore } from '../support/store.ts'

const AGENT_IDS = ['', 'ag_1', 'ag_2', 'ag_3']
const BACKENDS = ['', 'db', 'git', 'Git', 'zé']
const ACTORS = ['local', 'system', 'ag_1', 'ag_2']
const ACTIONS: AuditEntry['action'][] = [
  'credential.issued',
  'credential.revoked',
  'credential.expired',
  'credential.settled',
  'auth.failed',
]
const CREDENTIALS = [null, 'cred_1', 'cred_2']
const SPAN_MS = 50

const entry = fc.record({
  agent: fc.constantFrom(...AGENT_IDS),
  actor: fc.constantFrom(...ACTORS),
  backend: fc.constantFrom(...BACKENDS),
  action: fc.constantFrom(...ACTIONS),
  credential: fc.constantFrom(...CREDENTIALS),
  at: fc.integer({ min: 0, max: SPAN_MS }),
})
const filter = fc.record(
  {
    agentId: fc.constantFrom(...AGENT_IDS, 'ag_none'),
    actor: fc.constantFrom(...ACTORS, 'ag_none'),
    backend: fc.constantFrom(...BACKENDS, 'none'),
    action: fc.constantFrom(...ACTIONS, 'none'),
    credentialId: fc.constantFrom('cred_1', 'cred_none'),
    from: fc.integer({ min: 0, max: SPAN_MS }).map((ms) => lowestBodyAt(T0 + ms)),
    before: fc.integer({ min: 0, max: SPAN_MS }).map((ms) => lowestBodyAt(T0 + ms)),
  },
  { requiredKeys: [] },
)

function naively(rows: readonly AuditEntry[], wanted: AuditFilter): AuditEntry[] {
  return rows
    .filter((row) => wanted.agentId === undefined || (row.agentId ?? '') === wanted.agentId)
    .filter((row) => wanted.actor === undefined || row.actor === wanted.actor)
    .filter((row) => wanted.backend === undefined || (row.backend ?? '') === wanted.backend)
    .filter((row) => wanted.action === undefined || row.action === wanted.action)
    .filter((row) => wanted.credentialId === undefined || row.credentialId === wanted.credentialId)
    .filter((row) => wanted.from === undefined || row.id >= wanted.from)
    .filter((row) => wanted.before === undefined || row.id < wanted.before)
    .toSorted((one, other) => (one.id < other.id ? 1 : -1))
}

describe.each(DIALECTS)('the audit on %s', (dialect) => {
  let opened: TestStore
  const rows: AuditEntry[] = []
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    for (const one of fc.sample(entry, { numRuns: 1_500, seed: 7 })) {
      rows.push(
        newEntry({
          id: newBody(T0 + one.at),
          at: T0 + one.at,
          agentId: one.agent || null,
          actor: one.actor,
          backend: one.backend || null,
          action: one.action,
          credentialId: one.credential,
        }),
      )
    }
    await opened.store.commit(rows.map(opened.store.audit.append))
  })
  afterAll(() => opened.close())

  test('answers every combination of filters like a naive filter', async () => {
    await fc.assert(
      fc.asyncProperty(filter, fc.integer({ min: 1, max: 200 }), async (wanted, limit) => {
        expect(await opened.store.audit.query(wanted, limit)).toEqual(naively(rows, wanted).slice(0, limit))
      }),
      // Of what an agent did to itself a part is found as what others did is: each once.
      { numRuns: 300, examples: [[{ actor: 'ag_1' }, 100]] },
    )
  })

  if (dialect === 'sqlite') {
    /** Notes how SQLite reads what is queried. */
    const explaining = (plans: string[]): Engine => ({
      ...opened.engine,
      read: async (query) => {
        const { sql, ...rest } = query.compile()
        const explained = { compile: () => ({ ...rest, sql: `EXPLAIN QUERY PLAN ${sql}` }) }
        for (const { detail } of await opened.engine.read<{ detail: string }>(explained)) plans.push(detail)
        return opened.engine.read(query)
      },
    })

    test('finds what an agent did to itself in the index alone, and reads as many rows as it may return', async () => {
      const plans: string[] = []
      const entries = await createAudit(explaining(plans)).query({ actor: 'ag_1' }, 10)
      expect(entries).toHaveLength(10)
      const sought = plans.filter((plan) => /INDEX audit_agent /.test(plan))
      expect(sought.length).toBeGreaterThan(5)
      expect(sought.filter((plan) => !plan.includes('COVERING'))).toEqual([])
    })

    test('seeks every query by actor in an index', async () => {
      const plans: string[] = []
      for (const actor of ['local', 'system', 'ag_1'])
        for (const agentId of [undefined, 'ag_1', 'ag_2'])
          for (const backend of [undefined, 'db'])
            for (const action of [undefined, 'credential.revoked', 'credential.expired'])
              await createAudit(explaining(plans)).query({ actor, agentId, backend, action }, 10)
      const used = plans.map((plan) => /\bINDEX (audit_\w+)/.exec(plan)?.[1])
      expect(new Set(used.filter((name) => name?.startsWith('audit_actor')))).toEqual(
        new Set(['audit_actor', 'audit_actor_backend', 'audit_actor_agent']),
      )
      expect(plans.filter((plan) => plan.startsWith('SCAN audit'))).toEqual([])
    })
  }

  test('pages by cursor without gaps or repetitions', async () => {
    await fc.assert(
      fc.asyncProperty(filter, fc.integer({ min: 20, max: 300 }), async (wanted, limit) => {
        const seen: AuditEntry[] = []
        let before = wanted.before
        for (;;) {
          const page = await opened.store.audit.query({ ...wanted, before }, limit)
          seen.push(...page)
          before = page.at(-1)?.id
          if (page.length < limit) break
        }
        expect(seen).toEqual(naively(rows, wanted))
      }),
      { numRuns: 40 },
    )
  })
})
