import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { alternateBursts } from '../bursts.ts'
import { againstRows, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { atGoal, issueTarget } from './issue.ts'

const SCRAPE_MS = 1_000

/** What it costs to be watched: the throughput of issuing beside that of a server that nobody watches. */
export const observed: Scenario = {
  name: 'observed',
  title: 'Issue (kind jwt), SQLite, while it is watched',
  run: async (bench) => [...(await scraped(bench)), ...(await traced(bench))],
}

async function scraped(bench: Bench): Promise<Row[]> {
  const title = 'Issue while Prometheus scrapes every second'
  const [ours, plain] = [await issueTarget(bench, bench.checkout), await issueTarget(bench, bench.checkout)]
  // As the local host.
  const scrape = () => get({ port: ours.port, path: '/metrics', agent: false }, (reply) => reply.resume())
  const timer = setInterval(scrape, SCRAPE_MS)
  const comparisons = await alternateBursts(title, ours, plain, atGoal(bench.pace), bench.say)
  clearInterval(timer)
  await Promise.all([ours.stop(), plain.stop()])
  return againstRows(title, 'not watched', comparisons)
}

/** Every request is in the trace: the receiver takes all spans. */
async function traced(bench: Bench): Promise<Row[]> {
  const title = 'Issue with traces of every request'
  const receiver = createServer((request, reply) => {
    request.resume().once('end', () => reply.end('{}'))
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  const environment = { MAYFLY_OTLP_ENDPOINT: endpoint }
  const ours = await issueTarget(bench, bench.checkout, { environment })
  const plain = await issueTarget(bench, bench.checkout)
  const comparisons = await alternateBursts(title, ours, plain, atGoal(bench.pace), bench.say)
  await Promise.all([ours.stop(), plain.stop()])
  receiver.close()
  return againstRows(title, 'not watched', comparisons)
}
