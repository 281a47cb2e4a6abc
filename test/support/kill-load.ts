import type { Issued } from './fault-world.ts'
import type { ServerProcess } from './server-process.ts'

/** How far a client knows a change to have gone: not requested, requested without a reply, acknowledged. */
export type Progress = 'no' | 'asked' | 'done'

export interface KnownAgent {
  readonly name: string
  readonly id: string
  readonly token: string
  deleted: Progress
}

export interface KnownCredential {
  readonly issued: Issued
  readonly agent: KnownAgent
  readonly short: boolean
  revoked: Progress
  revokedAt?: string
}

/** Everything that the server has acknowledged, as recorded by its clients. */
export interface AcknowledgedState {
  /** Issues are spread over these; a name that is there twice gets twice as many. */
  readonly backends: readonly string[]
  readonly agents: KnownAgent[]
  readonly credentials: Map<string, KnownCredential>
  acknowledged: number
  unanswered: number
  /** Replies with status 502 or above. */
  refused: number
  /** Replies that no client expects. */
  readonly unexpected: string[]
}

export function newAcknowledgedState(backends: readonly string[] = ['db', 'db', 'tok']): AcknowledgedState {
  const counts = { acknowledged: 0, unanswered: 0, refused: 0 }
  return { backends, agents: [], credentials: new Map(), ...counts, unexpected: [] }
}

const CLIENTS = 6
const FEWEST_AGENTS = 4
const MOST_ACTIVE = 60
let names = 0

/** Runs clients that issue, revoke and delete until the server dies or `stop` returns true. */
export async function runLoad(
  server: ServerProcess,
  state: AcknowledgedState,
  stop: () => boolean,
  clients = CLIENTS,
): Promise<void> {
  const client = async () => {
    while (!stop() && !server.hasEnded()) {
      try {
        await step(server, state)
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'NoAnswer') throw error
        state.unanswered += 1
        if (!server.hasEnded()) await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
}

async function step(server: ServerProcess, state: AcknowledgedState): Promise<void> {
  const agents = state.agents.filter((agent) => agent.deleted === 'no')
  const active = [...state.credentials.values()].filter(
    (one) => one.revoked === 'no' && !one.short && one.agent.deleted === 'no',
  )
  const dice = Math.random()
  if (agents.length < FEWEST_AGENTS) return create(server, state)
  if (dice < 0.03) return remove(server, state, pick(agents))
  if (dice < 0.3 || active.length > MOST_ACTIVE) {
    if (active.length > 0) return revoke(server, state, pick(active))
  }
  return issueOne(server, state, pick(agents))
}

async function create(server: ServerProcess, state: AcknowledgedState): Promise<void> {
  names += 1
  const name = `load-${names}`
  const body = { name, scopes: [...new Set(state.backends)] }
  const reply = await server.call<{ id: string; token: string }>(undefined, 'POST', '/v1/admin/agents', body)
  if (reply.status !== 200) return note(state, 'create', reply)
  state.agents.push({ name, id: reply.body.id, token: reply.body.token, deleted: 'no' })
  state.acknowledged += 1
}

async function remove(server: ServerProcess, state: AcknowledgedState, agent: KnownAgent): Promise<void> {
  agent.deleted = 'asked'
  const reply = await server.call(undefined, 'DELETE', `/v1/admin/agents/${agent.name}`)
  if (reply.status !== 204) return note(state, 'delete', reply)
  agent.deleted = 'done'
  state.acknowledged += 1
}

async function revoke(server: ServerProcess, state: AcknowledgedState, one: KnownCredential): Promise<void> {
  one.revoked = 'asked'
  const path = `/api/v1/credentials/${one.issued.id}`
  const reply = await server.call<{ revoked_at: string }>(undefined, 'DELETE', path)
  if (reply.status !== 200) return note(state, 'revoke', reply)
  one.revoked = 'done'
  one.revokedAt = reply.body.revoked_at
  state.acknowledged += 1
}

/** Issues a long-lived upstream credential to a new agent, retrying until the server acknowledges it. */
export async function issueLasting(server: ServerProcess, state: AcknowledgedState): Promise<void> {
  await create(server, state)
  const agent = state.agents.at(-1)
  const before = state.credentials.size
  while (agent !== undefined && state.credentials.size === before) {
    await issueOne(server, state, agent, state.backends[0], false)
  }
}

async function issueOne(
  server: ServerProcess,
  state: AcknowledgedState,
  agent: KnownAgent,
  backend = pick(state.backends),
  short = Math.random() < 0.15,
): Promise<void> {
  const body = { backend, ttl: short ? '2s' : '1h' }
  const reply = await server.call<Issued>(agent.token, 'POST', '/api/v1/credentials', body)
  // The agent may have been deleted by another client.
  if (reply.status !== 201) return agent.deleted === 'no' ? note(state, 'issue', reply) : undefined
  state.credentials.set(reply.body.id, { issued: reply.body, agent, short, revoked: 'no' })
  state.acknowledged += 1
}

/** A status of 502 or above is expected while the store or the upstream is down; the change may have happened. */
async function note(
  state: AcknowledgedState,
  what: string,
  reply: { status: number; body: unknown },
): Promise<void> {
  const seen = `${what}: ${reply.status} ${JSON.stringify(reply.body)}`
  if (reply.status < 502) state.unexpected.push(seen)
  else state.refused += 1
  await new Promise((resolve) => setTimeout(resolve, 20))
}

function pick<T>(from: readonly T[]): T {
  const one = from[Math.floor(Math.random() * from.length)]
  if (one === undefined) throw new Error('cannot pick from an empty list')
  return one
}
