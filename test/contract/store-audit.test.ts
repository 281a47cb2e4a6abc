import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import type { AuditFilter } from '../../src/store/audit.ts'
import type { Step } from '../../src/store/change.ts'
import type { AuditRow } from '../../src/store/schema.ts'
import { auditRow, DIALECTS, newBody, openTestStore, T0, type TestStore } from '../support/store.ts'

const AGENT_IDS = ['', 'ag_1', 'ag_2', 'ag_3']
const BACKENDS = ['', 'db', 'git', 'Git', 'zé']
const ACTIONS = ['credential.issued', 'credential.revoked', 'token.issued', 'auth.failed']
const CREDENTIALS = [null, 'cred_1', 'cred_2']
const SPAN_MS = 50

const entry = fc.record({
  agent: fc.constantFrom(...AGENT_IDS),
  backend: fc.constantFrom(...BACKENDS),
  action: fc.constantFrom(...ACTIONS),
  credential: fc.constantFrom(...CREDENTIALS),
  at: fc.integer({ min: 0, max: SPAN_MS }),
})
const filter = fc.record(
  {
    agentId: fc.constantFrom(...AGENT_IDS, 'ag_none'),
    backend: fc.constantFrom(...BACKENDS, 'none'),
    action: fc.constantFrom(...ACTIONS, 'none'),
    credentialId: fc.constantFrom('cred_1', 'cred_none'),
    from: fc.integer({ min: 0, max: SPAN_MS }).map((ms) => lowestBodyAt(T0 + ms)),
    before: fc.integer({ min: 0, max: SPAN_MS }).map((ms) => lowestBodyAt(T0 + ms)),
  },
  { requiredKeys: [] },
)

function naively(rows: readonly AuditRow[], wanted: AuditFilter): AuditRow[] {
  return rows
    .filter((row) => wanted.agentId === undefined || row.agent_id === wanted.agentId)
    .filter((row) => wanted.backend === undefined || row.backend === wanted.backend)
    .filter((row) => wanted.action === undefined || row.action === wanted.action)
    .filter((row) => wanted.credentialId === undefined || row.credential_id === wanted.credentialId)
    .filter((row) => wanted.from === undefined || row.id >= wanted.from)
    .filter((row) => wanted.before === undefined || row.id < wanted.before)
    .toSorted((one, other) => (one.id < other.id ? 1 : -1))
}

describe.each(DIALECTS)('the audit on %s', (dialect) => {
  let opened: TestStore
  const rows: AuditRow[] = []
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    for (const one of fc.sample(entry, { numRuns: 1_500, seed: 7 })) {
      rows.push(
        auditRow({
          id: newBody(T0 + one.at),
          at: T0 + one.at,
          agent_id: one.agent,
          backend: one.backend,
          action: one.action,
          credential_id: one.credential,
        }),
      )
    }
    await opened.store.commit(rows.map((row): Step => ({ op: 'insert', table: 'audit', row })))
  })
  afterAll(() => opened.close())

  test('every combination of filters answers as a naive filter does', async () => {
    await fc.assert(
      fc.asyncProperty(filter, fc.integer({ min: 1, max: 200 }), async (wanted, limit) => {
        expect(await opened.store.audit.query(wanted, limit)).toEqual(naively(rows, wanted).slice(0, limit))
      }),
      { numRuns: 300 },
    )
  })

  test('pages by cursor leave nothing out and repeat nothing', async () => {
    await fc.assert(
      fc.asyncProperty(filter, fc.integer({ min: 20, max: 300 }), async (wanted, limit) => {
        const seen: AuditRow[] = []
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
