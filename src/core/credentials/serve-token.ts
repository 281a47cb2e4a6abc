import type { Backend, ServedToken } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import type { Agent } from '../../domain/agent.ts'
import type { Credential } from '../../domain/credential.ts'
import { isId } from '../../domain/ids.ts'
import { MINUTE_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import { scopeHere } from '../../domain/scope.ts'
import { audit } from '../audit/entry.ts'
import { asProblem } from '../backends/call-upstream.ts'
import type { Actor, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import { findPublicBackend, openPublicBackend } from '../public-backend.ts'

export interface TokenCommand {
  /** The name of the backend, case-sensitive like the URL of an issuer. */
  readonly backend: string
  /** Basic authentication: the id of a credential, and its password. */
  readonly authorization: string | undefined
  readonly asked: readonly string[]
}

/** Times in epoch ms. */
export interface RealmToken {
  readonly token: string
  readonly issuedAt: number
  readonly expiresAt: number
}

/** Programs ask again when a token has ended; a revoked credential works for this long at most, in ms. */
const LONGEST_MS = 5 * MINUTE_MS
/** A network may fail as often as this many credentials. */
const CREDENTIALS_OF_A_NETWORK = 10
/** Stands in for an unknown credential. No secret has this hash. */
const NO_HASH = '-'.repeat(43)

/**
 * A short token for a program that presents a living credential of this backend. Unknown credentials, wrong passwords and ended
 * credentials get the same `unauthorized`, after the same work; failures are limited as those of clients. The entry is durable
 * before the token leaves. Throws `not_found` for a backend whose kind serves no tokens, `invalid_request`, `rate_limited`,
 * `conflict`, `backend_unavailable`, `audit_unavailable`.
 */
export async function serveToken(core: Core, command: TokenCommand, origin: Origin): Promise<RealmToken> {
  const { backend, instance } = await find(core, command.backend)
  const { username, password } = readBasic(command.authorization)
  const credential = isId('credential', username) ? await core.store.credentials.find(username) : undefined
  const agent = await prove(core, backend, credential, password)
  if (agent === undefined || credential === undefined) {
    throw refuse(core, backend, credential, { origin, wasSent: command.authorization !== undefined })
  }
  core.meter.authenticated('client_secret_basic', 'ok')
  requireRate(core, agent, credential, origin)
  const issuedAt = core.store.now()
  const expiresAt = Math.min(issuedAt + LONGEST_MS, credential.expiresAt)
  const { token, granted } = await ask(instance, {
    ...{ credentialId: credential.id, agent: { id: agent.id, name: agent.name } },
    scopes: credential.scopes.map((scope) => scopeHere(backend.name, scope)),
    ...{ asked: command.asked, now: issuedAt, expiresAt },
  })
  const actor: Actor<undefined> = { caller: undefined, origin }
  const guard = { op: 'guard', table: 'agents', id: agent.id, version: agent.version } as const
  const entry = audit(core, actor, {
    action: 'token.issued',
    agent,
    ...{ backend: backend.name, credentialId: credential.id, ttlMs: expiresAt - issuedAt },
    runId: credential.runId,
    scopes: granted.map((scope) => `${backend.name}:${scope}`),
  })
  const outcome = await commit(core, actor, [guard, entry], { code: 'audit_unavailable' })
  if (!outcome.done) {
    throw new Problem('conflict', { message: 'The agent was changed at the same time; try again.' })
  }
  return { token, issuedAt, expiresAt }
}

async function find(core: Core, name: string): Promise<{ backend: OpenBackend; instance: Backend }> {
  const backend = await findPublicBackend(core, name)
  const instance = await openPublicBackend(backend)
  if (instance.tokenFor === undefined) throw new Problem('not_found')
  return { backend, instance }
}

const BASIC = /^basic +([A-Za-z0-9+/]{1,1024}={0,2})$/i

/** RFC 7617 §2. Without a match, returns values that no credential has. */
function readBasic(authorization: string | undefined): { username: string; password: string } {
  const encoded = BASIC.exec(authorization ?? '')?.[1] ?? ''
  const [, username = '', password = ''] =
    /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? []
  return { username, password }
}

/** The agent, if the password is that of a living credential of this backend. */
async function prove(
  core: Core,
  backend: OpenBackend,
  credential: Credential | undefined,
  password: string,
): Promise<Agent | undefined> {
  const matches = core.hasher.matches(password, credential?.secretHash ?? NO_HASH)
  if (!matches || credential === undefined || credential.backendUid !== backend.uid) return undefined
  if (credential.state !== 'active' || credential.expiresAt <= core.store.now()) return undefined
  // An agent that ended with very many credentials may still have active ones.
  const agent = await core.store.agents.findLiving(credential.agentId)
  return agent === undefined || (agent.expiresAt ?? Number.POSITIVE_INFINITY) > core.store.now()
    ? agent
    : undefined
}

/** A program that sends no password learns only that it needs one, which is no failure. */
function refuse(
  core: Core,
  backend: OpenBackend,
  credential: Credential | undefined,
  { origin, wasSent }: { readonly origin: Origin; readonly wasSent: boolean },
): Problem {
  const message = 'Send the user name and the password of a credential of this backend.'
  if (!wasSent) return new Problem('unauthorized', { message, basic: true })
  core.meter.authenticated('client_secret_basic', 'failed')
  const agent = credential === undefined ? null : { id: credential.agentId, name: credential.agentName }
  core.denials.record(
    { caller: undefined, origin },
    { action: 'token.refused', agent, backend: backend.name, details: { code: 'unauthorized' } },
  )
  const network = networkOf(origin.ipAddress)
  const rate = { count: core.settings.tokenFailuresPerMinute, perMs: MINUTE_MS }
  const now = core.store.now()
  const ofNetwork = { ...rate, count: rate.count * CREDENTIALS_OF_A_NETWORK }
  const wait =
    core.rates.take(`realm-network|${network}`, ofNetwork, now) ||
    core.rates.take(`realm|${credential?.id ?? ''}|${network}`, rate, now)
  if (wait === 0) return new Problem('unauthorized', { message, basic: true })
  return new Problem('rate_limited', {
    message: 'Too many failed attempts from this address.',
    retryAfterSeconds: wait,
  })
}

function requireRate(core: Core, agent: Agent, credential: Credential, origin: Origin): void {
  const rate = { count: core.settings.tokensPerMinute, perMs: MINUTE_MS }
  const wait = core.rates.take(`realm-tokens|${agent.id}`, rate, core.store.now())
  if (wait === 0) return
  core.denials.record(
    { caller: undefined, origin },
    { action: 'token.refused', agent, backend: credential.backend, details: { code: 'rate_limited' } },
  )
  const message = 'This agent gets tokens for registries too often; use each one until it expires.'
  throw new Problem('rate_limited', { message, retryAfterSeconds: wait })
}

async function ask(
  instance: Backend,
  request: Parameters<NonNullable<Backend['tokenFor']>>[0],
): Promise<ServedToken> {
  try {
    const served = await instance.tokenFor?.(request)
    if (served === undefined) throw new Problem('not_found')
    return served
  } catch (error) {
    throw asProblem(error)
  }
}
