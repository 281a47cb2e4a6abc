import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import pg from 'pg'
import { countActivity } from '../../src/core/audit/count-activity.ts'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { tidy } from '../../src/jobs/tidy.ts'
import { type NewAgent, startApp, type TestApp } from '../../test/support/app.ts'
import { newPerson } from '../../test/support/person.ts'
import { type OwnPostgres, startOwnPostgres } from '../../test/support/postgres.ts'
import { beat, beginRun } from './proxied-run.ts'
import { createIds, createRandom, NOW, publicKeyOf } from './seeded.ts'

/** The server of a shop on one afternoon, for screenshots: with a day behind it, requests that wait, and one upstream that does not revoke. */
export interface Shop {
  readonly app: TestApp
  /** A link by which Alice logs in. */
  link(): Promise<string>
  /** A credential that could not be ended. */
  readonly stuck: string
  /** The request of an agent for more. */
  readonly request: string
  /** A run that goes through a proxy. */
  readonly run: string
  close(): Promise<void>
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const YAML = `
trusted_proxies: [127.0.0.0/8]
policies:
  - name: ci
    pattern: "ci-*"
    scopes: ["orders:shop:read", "payments:read"]
    deny: ["payments:refund"]
    auto_approve: true
    max_agent_lifetime: 24h
    max_ttl: 1h
    max_agents: 50
    rate: 10/hour
  - name: assistants
    pattern: "claude-*"
    scopes: ["orders:shop:read", "warehouse:analytics:read"]
    auto_approve: false
    max_agent_lifetime: 30d
`

/** Who works here: what they may, from where, and how often an hour they ask for what, at noon. */
const AGENTS = [
  ['checkout', 'Payments team', ['orders:shop:read', 'payments'], '10.20.4.11', 'payments', 14, '15m'],
  ['ci-build', 'Platform team', ['orders:shop:read', 'payments:read'], '10.20.7.31', 'orders', 9, '10m'],
  ['nightly-report', 'Analytics', ['warehouse:analytics:read'], '10.20.5.20', 'warehouse', 3, '2h'],
  ['claude-anna', 'Anna', ['orders:shop:read', 'warehouse:analytics:read'], '10.20.9.7', 'orders', 5, '20m'],
  ['claude-ben', 'Ben', ['orders:shop:read', 'payments:read'], '10.20.9.12', 'orders', 4, '20m'],
  ['deploy-bot', 'Platform team', ['bastion:deploy', 'mesh'], '10.20.7.30', 'bastion', 3, '30m'],
  ['gateway', 'Platform team', ['mesh'], '10.20.4.2', 'mesh', 0.4, '8h'],
] as const

/** One sequence for the whole story. */
const random = createRandom(1)

const SCOPE = {
  payments: ['read', 'charge'],
  orders: ['shop:read'],
  warehouse: ['analytics:read'],
  bastion: ['deploy'],
  mesh: ['gateway.shop.internal'],
} as const

export async function openShop(): Promise<Shop> {
  const postgres = await startOwnPostgres()
  const front = await listenBefore(postgres)
  const app = await startApp({ ownIssuer: true, yaml: YAML, resolver: resolverTo(front) })
  const close = async () => {
    await app.close()
    front.close()
    await postgres.stop()
  }
  try {
    return { app, close, ...(await fill(app, postgres, (front.address() as AddressInfo).port)) }
  } catch (error) {
    await close()
    throw error
  }
}

/** Upstreams have names here, all of which lead to one PostgreSQL. */
const resolverTo = (front: Server) =>
  createResolver({
    lookUp: async () => ({ addresses: [(front.address() as AddressInfo).address], ttlMs: HOUR }),
  })

/** At the usual port of an address that nobody else uses, where that is free. */
async function listenBefore({ host, port }: OwnPostgres): Promise<Server> {
  const server = createServer((client) => {
    const upstream = connect(port, host)
    client.pipe(upstream).pipe(client)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
  })
  const listen = (at: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(at, '127.0.0.87', resolve)
    })
  await listen(5432).catch(() => listen(0))
  return server
}

export type Clock = { now: number }

/** The server's time stands still unless the story goes on. */
function stopClock(app: TestApp): Clock {
  const clock = { now: NOW - 30 * DAY }
  const { core } = app
  core.store.now = () => clock.now
  Object.assign(core, { ids: createIds(() => clock.now) })
  Object.assign(core.store.audit, { horizon: async () => lowestBodyAt(clock.now + 1) })
  Math.random = createRandom(2)
  return clock
}

async function fill(app: TestApp, postgres: OwnPostgres, port: number) {
  const clock = stopClock(app)
  const root = new pg.Client({ connectionString: postgres.url })
  await root.connect()
  try {
    await addBackends(app, root, port)
    const { id } = await newPerson(app, { ...ALICE, passkey: false })
    await newPerson(app, { ...BEN, passkey: false })
    await app.local.post('/v1/admin/keys/rotate')
    const agents = await addAgents(app, clock)
    await passTime(app, clock, agents, NOW - 30 * MINUTE)
    const stuck = await failToRevoke(app, root)
    await passTime(app, clock, agents, NOW - 3 * MINUTE)
    const run = await beginRun(agents.get('claude-ben')?.client, clock)
    const request = await ask(app, clock, agents)
    clock.now = NOW - 5_000
    await beat(agents.get('claude-ben')?.client, run)
    clock.now = NOW
    await app.sweep()
    await tidy(app.core)
    while (await countActivity(app.core));
    await app.core.lastUse.flush()
    await app.core.revocations.flush()
    const link = async (): Promise<string> =>
      (await app.local.post(`/v1/admin/operators/${id}/invitation`)).body.invitation.url
    return { link, stuck, request, run }
  } finally {
    await root.end()
  }
}

const ALICE = { email: 'alice@example.com', name: 'Alice' }
const BEN = {
  email: 'ben@example.com',
  name: 'Ben',
  scopes: ['admin:enrollments:*', 'admin:audit:read', 'admin:tokens:*'],
  backend_scopes: ['orders', 'payments'],
}

async function addBackends(app: TestApp, root: pg.Client, port: number): Promise<void> {
  for (const [name, right] of [
    ['shop', 'CREATEROLE'],
    ['analytics', 'SUPERUSER'],
  ]) {
    await root.query(`CREATE ROLE mayfly_${name} ${right} LOGIN PASSWORD 'secret'`)
    await root.query(`CREATE DATABASE ${name} OWNER mayfly_${name}`)
  }
  const database = (host: string, name: string) => ({
    type: 'postgres',
    config: { host, port, database: name, username: `mayfly_${name}`, password: 'secret', local: true },
  })
  const add = (name: string, description: string, more: object) =>
    app.newBackend({ name, description, max_ttl: '8h', ...more })
  await add('orders', 'The orders of the shop', database('orders-db.internal', 'shop'))
  await add('warehouse', 'What the analysts read', database('warehouse.internal', 'analytics'))
  await add('payments', 'Tokens for the payment service', { config: { audience: 'payments' } })
  await add('bastion', 'The way into production', {
    type: 'ssh',
    config: { principals: ['deploy', 'backup'] },
  })
  await add('mesh', 'Certificates between services', {
    type: 'x509',
    config: { names: ['*.shop.internal'], usage: 'both' },
  })
}

type Agents = ReadonlyMap<string, NewAgent>

async function addAgents(app: TestApp, clock: Clock): Promise<Agents> {
  const agents = new Map<string, NewAgent>()
  for (const [name, owner, scopes] of AGENTS) {
    clock.now += 3 * DAY
    const expires_in = name.startsWith('claude') ? '30d' : undefined
    agents.set(name, await app.newAgent({ name, scopes, ...{ owner, ...(expires_in && { expires_in }) } }))
  }
  return agents
}

const from = (name: string) => ({
  'x-forwarded-for': AGENTS.find(([other]) => other === name)?.[3] ?? '10.20.8.1',
})

/** How busy an hour of the day is, from 0 to 1. */
const busy = (at: number): number => {
  const hour = (at / HOUR) % 24
  return 0.08 + 0.92 * Math.exp(-(((hour - 13) / 3.6) ** 2))
}

/** Agents issue until then; what has expired is swept. */
async function passTime(app: TestApp, clock: Clock, agents: Agents, until: number): Promise<void> {
  const step = 2 * MINUTE
  for (let at = Math.max(clock.now, NOW - DAY); at < until; at += step) {
    for (const [name, , , , backend, perHour, ttl] of AGENTS) {
      if (random() > perHour * busy(at) * (step / HOUR)) continue
      clock.now = Math.max(clock.now, at + Math.floor(random() * MINUTE))
      await issue(agents, name, backend, ttl)
    }
    // A job asks for what it may not have.
    if (Math.floor(at / HOUR) % 5 === 0 && random() < 0.1)
      await issue(agents, 'nightly-report', 'payments', '1h')
    clock.now = Math.max(clock.now, at + step - 1)
    if (at % (10 * MINUTE) === 0 || at > NOW - HOUR) await app.sweep()
  }
}

async function issue(agents: Agents, name: string, backend: keyof typeof SCOPE, ttl: string): Promise<void> {
  const scopes = SCOPE[backend].map((scope) => `${backend}:${scope}`)
  await agents.get(name)?.client.post('/api/v1/credentials', { backend, scopes, ttl }, from(name))
}

/** The warehouse has taken a right from Mayfly: what an agent has there is ended here, and not upstream. */
async function failToRevoke(app: TestApp, root: pg.Client): Promise<string> {
  const live = (await app.local.get('/v1/admin/tokens?backend=warehouse&status=active&limit=5')).body
  await root.query('ALTER ROLE mayfly_analytics NOSUPERUSER')
  await root.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mayfly_analytics'",
  )
  const ids = (live as { id: string }[]).slice(0, 2).map(({ id }) => id)
  for (const id of ids) await app.local.delete(`/v1/admin/tokens/${id}`)
  return ids[0] ?? ''
}

/** Machines that wish to come in, and an agent that wishes for more. */
async function ask(app: TestApp, clock: Clock, agents: Agents): Promise<string> {
  const enroll = async (name: string, scopes: string[], ip: string, metadata: object) => {
    const reply = await app
      .as(undefined)
      .post(
        '/v1/enroll',
        { name, scopes, public_key: publicKeyOf(name), metadata },
        { 'x-forwarded-for': ip },
      )
    if (reply.status >= 300) throw new Error(reply.text)
  }
  clock.now = NOW - 100_000
  await enroll('claude-carla', ['orders:shop:read', 'warehouse:analytics:read'], '10.20.9.23', {
    host: 'carla-laptop',
    user: 'carla',
  })
  clock.now = NOW - 70_000
  await enroll('returns', ['orders:shop:read', 'payments:refund'], '10.20.4.40', { host: 'returns-1' })
  clock.now = NOW - 40_000
  const reply = await agents.get('claude-anna')?.client.post(
    '/v1/request',
    {
      scopes: ['payments:read', 'orders:shop:read'],
      reason: 'I compare the refunds of last week with the orders, for ticket SHOP-812.',
      expires_in: '2h',
    },
    from('claude-anna'),
  )
  if (reply?.status !== 200 && reply?.status !== 202) throw new Error(reply?.text)
  return reply.body.id
}
