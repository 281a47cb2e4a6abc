import { rowsOfEach } from '../against.ts'
import { issueRows } from '../postgres-kind/issuing.ts'
import { revocationRows } from '../postgres-kind/revocation.ts'
import { areGone, fill } from '../postgres-kind/roles.ts'
import { type KindWorld, openKindWorld, openPostgres } from '../postgres-kind/world.ts'
import type { Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'

/** Issuing and revoking credentials of the kind `postgres`, beside the bare statements that this takes. */
export const postgresKind: Scenario = {
  name: 'postgres-kind',
  title: 'Kind postgres',
  async run(bench) {
    return rowsOfEach(bench, async (checkout, whose) => {
      const rows: Row[] = []
      const superuser = await openPostgres(bench.kind.server)
      for (const tables of bench.kind.tables) {
        const world = await openKindWorld(bench, checkout, superuser, tables)
        const has = `${tables} ${tables === 1 ? 'table' : 'tables'}`
        rows.push(...(await rowsOf(bench, world, `${whose}${world.version}, ${bench.kind.way}, ${has}`)))
        await world.stop()
      }
      return rows
    })
  },
}

/** With more and more live credentials, which are issued through Mayfly like any other. */
async function rowsOf(bench: Bench, world: KindWorld, label: string): Promise<Row[]> {
  const { live, iterations, clients } = bench.kind
  const rows: Row[] = []
  const holder = await world.newAgent()
  for (const count of live) {
    await world.setIterations(Math.min(...iterations))
    const there = await world.roles()
    if (there.length < count) {
      bench.say(`${label}: issuing ${count - there.length} credentials`)
      await fill(world, holder, count - there.length)
    }
    const at = `${label}, ${count} live`
    for (const each of iterations) {
      await world.setIterations(each)
      for (const some of clients) rows.push(...(await issueRows(bench, world, at, each, some)))
    }
    await world.setIterations(Math.min(...iterations))
    rows.push(...(await revocationRows(bench, world, at)))
  }
  const left = await world.roles()
  await holder.delete()
  await areGone(world, left)
  return rows
}
