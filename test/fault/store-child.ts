/**
 * A store in its own process, so that tests can make its disk fail and kill it: `node store-child.ts <directory>`.
 * Reads one JSON command per line and writes one line per answer; each answer repeats the `n` of its command.
 */
import { createInterface } from 'node:readline'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { auditRow } from '../support/store.ts'

export type Command =
  | { n: number; op: 'commit'; ids: string[]; urgent?: boolean; bytes?: number }
  | { n: number; op: 'inspect' }

const reports: string[] = []
const engine = await openSqlite({
  directory: process.argv[2] ?? '',
  onTrouble: (what, error) => reports.push(`${what}: ${error instanceof Error ? error.message : ''}`),
})

/** Commits each id as a separate change; all changes arrive together. */
async function commitAll(ids: readonly string[], urgent: boolean, bytes: number): Promise<string[]> {
  const working = ids.map((id) => {
    const row = auditRow({ id, details: 'x'.repeat(bytes) })
    return engine.commit([{ op: 'insert', table: 'audit', row }], { urgent })
  })
  const answers = await Promise.allSettled(working)
  return answers.map((one) => (one.status === 'fulfilled' ? String(one.value.done) : one.reason.detail))
}

async function answer(command: Command): Promise<object> {
  if (command.op === 'commit') {
    return { answers: await commitAll(command.ids, command.urgent ?? false, command.bytes ?? 0) }
  }
  const rows = await engine.read(engine.build.selectFrom('audit').select('id'))
  return { trouble: engine.trouble() ?? null, ids: rows.map((row) => (row as { id: string }).id), reports }
}

process.stdout.write(`${JSON.stringify({ n: 0 })}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as Command
  process.stdout.write(`${JSON.stringify({ n: command.n, ...(await answer(command)) })}\n`)
}
