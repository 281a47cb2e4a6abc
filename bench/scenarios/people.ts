import { MAX_PAGE } from '../../src/domain/limits.ts'
import { alternateBursts } from '../bursts.ts'
import { temporaryDirectory } from '../processes.ts'
import { againstRows } from '../report.ts'
import { fetchJson } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { fill, loggedIn, type People } from '../seed.ts'
import { startOurs } from '../server.ts'
import { atGoal, type IssueTarget, issueTarget } from './issue.ts'

const OPERATORS = 200
const SESSIONS_OF_EACH = 5
const SESSIONS = OPERATORS * SESSIONS_OF_EACH

/** What it costs agents that people are logged in: the throughput of issuing beside that of a server without people. */
export const people: Scenario = {
  name: 'people',
  title: `Issue (kind jwt), SQLite, with ${SESSIONS} live sessions of ${OPERATORS} operators`,
  async run(bench) {
    const ours = await targetWith(bench, loggedIn(OPERATORS, SESSIONS_OF_EACH, Date.now()))
    const plain = await targetWith(bench, loggedIn(0, 0, Date.now()))
    const comparisons = await alternateBursts(people.title, ours, plain, atGoal(bench.pace), bench.say)
    // A session that has ended does not come back: what lives now has lived through all bursts.
    await requireLive(ours, SESSIONS)
    await requireLive(plain, 0)
    await Promise.all([ours.stop(), plain.stop()])
    return againstRows(people.title, 'without operators', comparisons)
  },
}

/** A server whose store has these people. */
async function targetWith(bench: Bench, some: People): Promise<IssueTarget> {
  const dataDir = temporaryDirectory(bench.directory)
  const server = await startOurs({ ...bench, dataDir })
  await server.stop()
  await fill({ dataDir, databaseUrl: undefined }, { ...some })
  return issueTarget(bench, bench.checkout, { dataDir })
}

async function requireLive({ port }: IssueTarget, expected: number): Promise<void> {
  const path = `/v1/admin/sessions?limit=${MAX_PAGE}`
  const live = await fetchJson<{ email: string | null }[]>({ method: 'GET', path }, port)
  const owned = live.filter(({ email }) => email !== null).length
  if (owned !== expected) throw new Error(`${owned} sessions of operators live, not ${expected}`)
}
