import type { Issued } from './fault-world.ts'
import type { ServerProcess } from './server-process.ts'

/** How far a change is known to have gone: not asked for, asked without an answer, acknowledged. */
export type Told = 'no' | 'asked' | 'done'

export interface KnownAgent {
  readonly name: string
  readonly id: string
  readonly token: string
  deleted: Told
}

export interface KnownCredential {
  readonly issued: Issued
  readonly agent: KnownAgent
  readonly short: boolean
  revoked: Told
  revokedAt?: string
}

/** All that the server has acknowledged, written down by its clients. */
export interface Ledger {
  readonly agents: KnownAgent[]
  readonly credentials: Map<string, KnownCredential>
  acknowledged: number
  unanswered: number
  /** Answered with 502 or above. */
  refused: number
  /** Answers other than those foreseen. */
  readonly odd: string[]
}

export function newLedger(): Ledger {
  return { agents: [], credentials: new Map(), acknowledged: 0, unanswered: 0, refused: 0, odd: [] }
}

const CLIENTS = 6
const FEWEST_AGENTS = 4
const MOST_ACTIVE = 60
let names = 0

/** Clients that issue, revoke and delete until the server is dead or `stop` holds. Resolves when all have ended. */
export async function runLoad(server: ServerProcess, ledger: Ledger, stop: () => boolean): Promise<void> {
  const client = async () => {
    while (!stop() && !server.hasEnded()) {
      try {
        await step(server, ledger)
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'NoAnswer') throw error
        ledger.unanswered += 1
        if (!server.hasEnded()) await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

async function step(server: ServerProcess, ledger: Ledger): Promise<void> {
  const agents = ledger.agents.filter((agent) => agent.deleted === 'no')
  const active = [...ledger.credentials.values()].filter(
    (one) => one.revoked === 'no' && !one.short && one.agent.deleted === 'no',
  )
  const dice = Math.random()
  if (agents.length < FEWEST_AGENTS) return create(server, ledger)
  if (dice < 0.03) return remove(server, ledger, pick(agents))
  if (dice < 0.3 || active.length > MOST_ACTIVE) {
    if (active.length > 0) return revoke(server, ledger, pick(active))
  }
  return issueOne(server, ledger, pick(agents))
}

async function create(server: ServerProcess, ledger: Ledger): Promise<void> {
  names += 1
  const name = `load-${names}`
  const body = { name, scopes: ['db', 'tok'] }
  const reply = await server.call<{ id: string; token: string }>(undefined, 'POST', '/v1/admin/agents', body)
  if (reply.status !== 200) return note(ledger, 'create', reply)
  ledger.agents.push({ name, id: reply.body.id, token: reply.body.token, deleted: 'no' })
  ledger.acknowledged += 1
}

async function remove(server: ServerProcess, ledger: Ledger, agent: KnownAgent): Promise<void> {
  agent.deleted = 'asked'
  const reply = await server.call(undefined, 'DELETE', `/v1/admin/agents/${agent.name}`)
  if (reply.status !== 204) return note(ledger, 'delete', reply)
  agent.deleted = 'done'
  ledger.acknowledged += 1
}

async function revoke(server: ServerProcess, ledger: Ledger, one: KnownCredential): Promise<void> {
  one.revoked = 'asked'
  const path = `/api/v1/credentials/${one.issued.id}`
  const reply = await server.call<{ revoked_at: string }>(undefined, 'DELETE', path)
  if (reply.status !== 200) return note(ledger, 'revoke', reply)
  one.revoked = 'done'
  one.revokedAt = reply.body.revoked_at
  ledger.acknowledged += 1
}

/** One that lasts, upstream, with an agent of its own; asked for until it is acknowledged. */
export async function issueLasting(server: ServerProcess, ledger: Ledger): Promise<void> {
  await create(server, ledger)
  const agent = ledger.agents.at(-1)
  const before = ledger.credentials.size
  while (agent !== undefined && ledger.credentials.size === before) {
    await issueOne(server, ledger, agent, 'db', false)
  }
}

async function issueOne(
  server: ServerProcess,
  ledger: Ledger,
  agent: KnownAgent,
  backend = Math.random() < 0.7 ? 'db' : 'tok',
  short = Math.random() < 0.15,
): Promise<void> {
  const body = { backend, ttl: short ? '2s' : '1h' }
  const reply = await server.call<Issued>(agent.token, 'POST', '/api/v1/credentials', body)
  // The agent may have been deleted by another client.
  if (reply.status !== 201) return agent.deleted === 'no' ? note(ledger, 'issue', reply) : undefined
  ledger.credentials.set(reply.body.id, { issued: reply.body, agent, short, revoked: 'no' })
  ledger.acknowledged += 1
}

/** What the store or the upstream cannot do for now is no surprise; it may or may not have been done. */
async function note(ledger: Ledger, what: string, reply: { status: number; body: unknown }): Promise<void> {
  const seen = `${what}: ${reply.status} ${JSON.stringify(reply.body)}`
  if (reply.status < 502) ledger.odd.push(seen)
  else ledger.refused += 1
  await new Promise((resolve) => setTimeout(resolve, 20))
}

function pick<T>(from: readonly T[]): T {
  const one = from[Math.floor(Math.random() * from.length)]
  if (one === undefined) throw new Error('nothing to pick from')
  return one
}
