import { setTimeout as pause } from 'node:timers/promises'
import { startDnsServer } from '../../test/support/dns-server.ts'
import { rowsOfEach } from '../against.ts'
import { addFar, CONFIG, startSlowApi } from '../far-upstream.ts'
import { startLoader } from '../loader.ts'
import { temporaryDirectory } from '../processes.ts'
import type { Ask } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Checkout, startOurs } from '../server.ts'
import { type Beside, issueUntil, merged, tailRow } from '../slices.ts'

const CLIENTS = 8
/** Of the healthy upstream: slow enough that the clients stay below the limit of active credentials. */
const DELAY_MS = 20
/** Port 53 of an address that nobody else uses. */
const NAME_SERVER = '127.53.53.53'

/** Clients ask for credentials of an upstream whose name server is silent, while others issue at a healthy one, by name as well. */
export const silentNameServer: Scenario = {
  name: 'silent-name-server',
  title: 'A silent name server',
  async run(bench) {
    if (process.getuid?.() !== 0) {
      bench.say('needs root, for a name server at port 53: not measured')
      return []
    }
    const title = `Issue at a healthy upstream beside ${CLIENTS} clients of a silent name server: p99`
    return rowsOfEach(bench, async (each, whose) => [
      tailRow(`${whose}${title}`, CLIENTS, await issueBeside(bench, each)),
    ])
  },
}

async function issueBeside(bench: Bench, checkout: Checkout): Promise<Beside> {
  const { quick } = bench
  const spanMs = quick ? 1_000 : 12_000
  const names = { 'well.test': ['127.0.0.1'], 'silent.test': 'silent' } as const
  await using _dns = await startDnsServer(names, { host: NAME_SERVER, port: 53 })
  const upstream = await startSlowApi(DELAY_MS)
  const dataDir = temporaryDirectory(bench.directory)
  const server = await startOurs({ ...bench, checkout, dataDir, nameServer: NAME_SERVER })
  const { port } = upstream
  const bearer = await addFar(server, { name: 'well', host: 'well.test', port })
  const silent = await addFar(server, { name: 'silent', host: 'silent.test', port })
  const load = {
    loader: startLoader(),
    server,
    asks: [askFor('well', bearer)],
    clients: CLIENTS,
    quick,
  }
  const quiet = await issueUntil(Date.now() + spanMs, load)
  const during = await besideClients(server.port, askFor('silent', silent), () =>
    issueUntil(Date.now() + spanMs, load),
  )
  await server.stop()
  await upstream.stop()
  return { quiet: merged(quiet), during: merged(during) }
}

const askFor = (backend: string, bearer: string): Ask => ({
  method: 'POST',
  path: '/api/v1/credentials',
  bearer,
  json: { backend, ttl: '1h', scopes: [`${CONFIG}:read`] },
})

/** Runs `work` while clients keep asking. After each refusal a client waits as long as `Retry-After` says. */
async function besideClients<T>(port: number, ask: Ask, work: () => Promise<T>): Promise<T> {
  const stopped = new AbortController()
  const clients = Promise.all(Array.from({ length: CLIENTS }, () => askUntil(stopped.signal, port, ask)))
  // Awaited below, when the work is done.
  clients.catch(() => undefined)
  try {
    return await work()
  } finally {
    stopped.abort()
    await clients
  }
}

async function askUntil(signal: AbortSignal, port: number, { path, bearer, json }: Ask): Promise<void> {
  const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify(json), signal }
  try {
    while (!signal.aborted) {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, request)
      await reply.arrayBuffer()
      if (reply.ok) throw new Error('a silent name server has answered')
      await pause(1_000 * Number(reply.headers.get('retry-after') ?? 1), undefined, { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
