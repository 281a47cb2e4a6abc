/**
 * Commits of what issuing writes (two guards, a credential, its audit entry): `node bench/store-commits.ts
 * sqlite|postgres <directory or URL> [callers] [seconds]`. Prints one JSON line.
 */
import { openStore } from '../src/store/open.ts'
import { agentRow, auditRow, backendRow, credentialRow, newBody } from '../test/support/store.ts'

const [dialect = 'sqlite', where = '/tmp/mayfly-bench-commits', callers = '64', seconds = '5'] =
  process.argv.slice(2)
const store = await openStore(
  dialect === 'sqlite' ? { directory: where } : { directory: '', databaseUrl: where },
)
const tag = `${process.pid}-${Date.now()}`
const agents = Array.from({ length: 50 }, (_, n) => agentRow({ id: `ag_${tag}-${n}` }))
const backend = backendRow({ uid: `be_${tag}` })
await store.commit([
  ...agents.map((row) => ({ op: 'insert', table: 'agents', row }) as const),
  { op: 'insert', table: 'backends', row: backend },
])
const own = { commits: store.stats.commits, changes: store.stats.changes }
const began = performance.now()
const end = began + Number(seconds) * 1_000
const taken: number[] = []

async function call(caller: number): Promise<void> {
  const agent = agents[caller % agents.length]
  if (agent === undefined) return
  while (performance.now() < end) {
    const at = Date.now()
    const credential = credentialRow({
      id: `cred_${newBody(at)}${tag}`,
      agent_id: agent.id,
      backend_uid: backend.uid,
    })
    const sent = performance.now()
    const outcome = await store.commit([
      { op: 'guard', table: 'agents', id: agent.id, version: 1 },
      { op: 'guard', table: 'backends', id: backend.uid, version: 1 },
      { op: 'insert', table: 'credentials', row: credential },
      {
        op: 'insert',
        table: 'audit',
        row: auditRow({
          id: `${newBody(at)}${tag}`,
          at,
          agent_id: agent.id,
          backend: 'db',
          credential_id: credential.id,
        }),
      },
    ])
    if (!outcome.done) throw new Error('refused')
    taken.push(performance.now() - sent)
  }
}

await Promise.all(Array.from({ length: Number(callers) }, (_, caller) => call(caller)))
const passed = (performance.now() - began) / 1_000
taken.sort((one, other) => one - other)
const ms = (share: number) => Number((taken[Math.floor(taken.length * share)] ?? 0).toFixed(2))
const changes = store.stats.changes - own.changes
console.log(
  JSON.stringify({
    bench: 'store-commits',
    dialect,
    callers: Number(callers),
    perSecond: Math.round(changes / passed),
    perCommit: Number((changes / (store.stats.commits - own.commits)).toFixed(1)),
    largestBatch: store.stats.largestBatch,
    p50: ms(0.5),
    p99: ms(0.99),
  }),
)
await store.close()
