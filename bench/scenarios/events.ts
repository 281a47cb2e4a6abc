import { type ClientRequest, get } from 'node:http'
import { alternateBursts } from '../bursts.ts'
import { againstRows, atLeast, type Row } from '../report.ts'
import { fetchJson } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { atGoal, issueTarget } from './issue.ts'

const STREAMS = 300
/** Of one caller. */
const PER_AGENT = 8

/** What open consoles cost: the throughput of issuing beside that of a server that nobody follows. */
export const events: Scenario = {
  name: 'events',
  title: `Issue (kind jwt), SQLite, with ${STREAMS} open streams of events`,
  run: follow,
}

async function follow(bench: Bench): Promise<Row[]> {
  const [ours, plain] = [await issueTarget(bench, bench.checkout), await issueTarget(bench, bench.checkout)]
  const streams = await openStreams(ours.port, STREAMS)
  const comparisons = await alternateBursts(events.title, ours, plain, atGoal(bench.pace), bench.say)
  const { open, bytes } = streams.state()
  bench.say(`${open} of ${STREAMS} streams are open; they have read ${bytes} bytes`)
  streams.close()
  await Promise.all([ours.stop(), plain.stop()])
  return againstRows(events.title, 'not followed', comparisons).map((row) => ({
    ...row,
    goal: atLeast(row.ratio, 0.95),
    detail: { ...row.detail, open, bytes },
  }))
}

async function openStreams(port: number, count: number) {
  const requests: ClientRequest[] = []
  let open = 0
  let bytes = 0
  for (let n = 0; n < count / PER_AGENT; n += 1) {
    const agent = { name: `reader-${n}`, scopes: ['admin:audit:read'] }
    const { token } = await fetchJson<{ token: string }>(
      { method: 'POST', path: '/v1/admin/agents', json: agent },
      port,
    )
    const some = Array.from({ length: Math.min(PER_AGENT, count - requests.length) }, () =>
      get({ port, path: '/v1/admin/events', headers: { authorization: `Bearer ${token}` }, agent: false }),
    )
    requests.push(...some)
    await Promise.all(
      some.map(
        (request) =>
          new Promise<void>((resolve, reject) => {
            request.on('error', reject)
            request.once('response', (reply) => {
              if (reply.statusCode !== 200) return reject(new Error(`a stream: ${reply.statusCode}`))
              open += 1
              reply.on('data', (chunk: Buffer) => {
                bytes += chunk.length
              })
              reply.once('close', () => {
                open -= 1
              })
              return resolve()
            })
          }),
      ),
    )
  }
  return {
    state: () => ({ open, bytes }),
    close: () => {
      for (const request of requests) request.on('error', () => undefined).destroy()
    },
  }
}
