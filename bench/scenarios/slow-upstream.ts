import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { rowsOfEach } from '../against.ts'
import { addFar, CONFIG, startSlowApi } from '../far-upstream.ts'
import { startLoader } from '../loader.ts'
import { temporaryDirectory } from '../processes.ts'
import { atMost, type Row } from '../report.ts'
import type { Ask } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { addAgents, BACKEND, type Checkout, type OurServer, SCOPES, startOurs } from '../server.ts'
import { type Beside, issueUntil, issueWhile, merged, tailRow } from '../slices.ts'

const DELAY_MS = 20
const CLIENTS = 8
const GOAL_SECONDS = 30
/** Requests under way while the credentials are issued. */
const AT_ONCE = 32
const SLOW = 'slow'

/** Many credentials of a slow upstream expire in the same second, while clients issue on another backend. */
export const slowUpstream: Scenario = {
  name: 'slow-upstream',
  title: 'Ends at a slow upstream',
  async run(bench) {
    return rowsOfEach(bench, async (each, whose) => rowsOf(whose, await endAtOnce(bench, each)))
  },
}

interface Ended extends Beside {
  readonly count: number
  /** From the beginning of the second in which they are due until the upstream has deleted the last one. */
  readonly seconds: number
}

async function endAtOnce(bench: Bench, checkout: Checkout): Promise<Ended> {
  const { quick } = bench
  const count = quick ? 200 : 10_000
  const [fillMs, quietMs] = quick ? [6_000, 2_000] : [90_000, 10_000]
  const upstream = await startSlowApi(DELAY_MS)
  const server = await startOurs({ ...bench, checkout, dataDir: temporaryDirectory(bench.directory) })
  const [agent] = await addAgents(server, 1)
  const bearer = await addFar(server, { name: SLOW, host: '127.0.0.1', port: upstream.port })
  const dueAt = Date.now() + fillMs
  await fill(server, bearer, count, dueAt)
  if (Date.now() > dueAt - quietMs) throw new Error('issuing the credentials took too long')
  const json = { backend: BACKEND, ttl: '1h', scopes: SCOPES }
  const ask: Ask = { method: 'POST', path: '/api/v1/credentials', bearer: agent!.token, json }
  const load = { loader: startLoader(), server, asks: [ask], clients: CLIENTS, quick }
  await pause(dueAt - quietMs - Date.now())
  const quiet = await issueUntil(dueAt, load)
  let over = false
  const gone = upstream.gone().finally(() => {
    over = true
  })
  const during = await issueWhile(() => !over, load)
  const lastAt = await gone
  await server.stop()
  await upstream.stop()
  const within = during.filter((one) => one.from >= dueAt && one.to <= lastAt)
  return {
    count,
    seconds: (lastAt - dueAt) / 1_000,
    quiet: merged(quiet),
    during: merged(within.length > 0 ? within : during.slice(0, 1)),
  }
}

/** Issues so many credentials, with lifetimes of whole seconds that all end in the second after `dueAt`. */
async function fill(server: OurServer, bearer: string, count: number, dueAt: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  let left = count
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) {
        const ttl = `${Math.ceil((dueAt - Date.now()) / 1_000)}s`
        const json = { backend: SLOW, ttl, scopes: [`${CONFIG}:read`] }
        await post(agent, server.port, bearer, json)
      }
    }),
  )
  agent.destroy()
}

function post(agent: Agent, port: number, bearer: string, json: object): Promise<void> {
  const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' }
  const target = { agent, host: '127.0.0.1', port, method: 'POST', path: '/api/v1/credentials', headers }
  return new Promise((resolve, reject) => {
    const asked = request(target, (reply) => {
      reply.resume()
      reply.on('end', () =>
        reply.statusCode === 201 ? resolve() : reject(new Error(`issuing answered ${reply.statusCode}`)),
      )
    })
    asked.on('error', reject)
    asked.end(JSON.stringify(json))
  })
}

function rowsOf(whose: string, { count, seconds, ...issuing }: Ended): Row[] {
  const ratio = seconds / GOAL_SECONDS
  return [
    {
      scenario: `${whose}End ${count} at an upstream of ${DELAY_MS} ms: ${seconds.toFixed(1)} s`,
      clients: undefined,
      figures: { perSecond: count / seconds },
      comparedWith: `${GOAL_SECONDS} s`,
      ratio,
      goal: atMost(ratio, 1),
    },
    tailRow(`${whose}Issue on another backend meanwhile: p99`, CLIENTS, issuing),
  ]
}
