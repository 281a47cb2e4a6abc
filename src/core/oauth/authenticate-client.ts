import { isId } from '../../domain/ids.ts'
import { MINUTE_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { VerifiedAssertion } from '../../keys/proofs.ts'
import type { Step } from '../../store/engine/change.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import {
  type ClientAttempt,
  type ClientMethod,
  type PresentedClient,
  readClientAttempt,
} from './client-attempt.ts'
import type { Client, Clients } from './clients.ts'
import { OAuthRefusal } from './oauth-refusal.ts'
import { unverifiedPart } from './unverified-jwt.ts'

/** Our parts and the clients that are known already. */
export type OAuthCore = Core & { readonly clients: Clients }
type Parts = Pick<
  OAuthCore,
  'store' | 'clients' | 'hasher' | 'keys' | 'rates' | 'denials' | 'meter' | 'lastUse' | 'settings'
>

export interface AuthenticatedClient {
  readonly client: Client
  readonly method: ClientMethod
  /** Makes the assertion one of a single use: belongs into the commit of what the client is given. */
  readonly proof: readonly Step[]
  readonly attempt: ClientAttempt
}

/** What an absent client is checked against, so that it takes as long as a wrong secret; nothing hashes to it. */
const NO_HASH = '-'.repeat(43)
/** Keys that anybody can sign with (RFC 8037 A.1; P-256's generator, whose key is 1) for the same end: never believed. */
const STAND_IN = {
  OKP: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
  EC: {
    kty: 'EC',
    crv: 'P-256',
    x: 'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY',
    y: 'T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU',
  },
} as const

/**
 * Which client this is. Unknown client, wrong secret, and an agent that has ended are one and the same
 * `invalid_client`, after the same work. Failures are limited per client and address; successes do not count, and
 * no other address is kept out. Throws `OAuthRefusal`, `invalid_request`, `rate_limited`.
 */
export async function authenticateClient(
  core: Parts,
  presented: PresentedClient,
  origin: Origin,
): Promise<AuthenticatedClient> {
  const attempt = readClientAttempt(presented)
  const wait = core.rates.wait(rateKey(attempt, origin), rateOf(core), core.store.now())
  if (wait > 0) throw tooMany(wait)
  const generation = await core.store.generation()
  const known = core.clients.known(attempt.clientId, generation)
  const proven = (await prove(core, attempt, known)) ?? (await proveAnew(core, attempt, generation))
  if ('refused' in proven) throw refuseClient(core, attempt, proven.refused, origin)
  core.meter.authenticated(attempt.method, 'ok')
  core.lastUse.touch(proven.client.agentId, core.store.now())
  return { ...proven, method: attempt.method, attempt }
}

interface Proven {
  readonly client: Client
  readonly proof: readonly Step[]
}

async function proveAnew(
  core: Parts,
  attempt: ClientAttempt,
  generation: number,
): Promise<Proven | { refused: Client | undefined }> {
  const client = await core.clients.read(attempt.clientId, generation)
  return (await prove(core, attempt, client)) ?? { refused: client }
}

/** Whether the evidence is this client's; the same work where there is no client. */
function prove(
  core: Parts,
  attempt: ClientAttempt,
  client: Client | undefined,
): Proven | undefined | Promise<Proven | undefined> {
  if (attempt.method === 'private_key_jwt') return proveByKey(core, attempt, client)
  const matches = core.hasher.matches(attempt.evidence, client?.secretHash ?? NO_HASH)
  return matches && client !== undefined ? { client, proof: [] } : undefined
}

async function proveByKey(
  core: Parts,
  attempt: ClientAttempt,
  client: Client | undefined,
): Promise<Proven | undefined> {
  const { issuer } = core.settings
  const kty = unverifiedPart(attempt.evidence, 0)?.['alg'] === 'ES256' ? 'EC' : 'OKP'
  const own = client?.publicJwk?.['kty'] === kty ? client.publicJwk : undefined
  const verified = await core.keys.verifyAssertion(attempt.evidence, own ?? STAND_IN[kty], {
    clientId: attempt.clientId,
    audiences: [issuer, `${issuer}/oauth/token`],
    now: core.store.now(),
  })
  if (verified === undefined || client === undefined || own === undefined) return undefined
  return { client, proof: [usedOnce(client, verified)] }
}

function usedOnce(client: Client, assertion: VerifiedAssertion): Step {
  const id = `assertion:${client.clientId}:${assertion.jti}`
  return { op: 'insert', table: 'used_proofs', row: { id, expires_at: assertion.rememberUntil } }
}

/** Records the failure, and says what to answer. `client`: whom it was said to be from, if there is such a client. */
export function refuseClient(
  core: Pick<Parts, 'rates' | 'denials' | 'meter' | 'store' | 'settings'>,
  attempt: ClientAttempt,
  client: Client | undefined,
  origin: Origin,
): OAuthRefusal | Problem {
  core.meter.authenticated(attempt.method, 'failed')
  core.denials.record(undefined, origin, {
    action: 'token.refused',
    agent: client === undefined ? undefined : { id: client.agentId, name: client.agentName },
    details: {
      code: 'invalid_client',
      method: attempt.method,
      ...(isId('client', attempt.clientId) ? { client_id: attempt.clientId } : {}),
    },
  })
  const wait = core.rates.take(rateKey(attempt, origin), rateOf(core), core.store.now())
  return wait > 0 ? tooMany(wait) : new OAuthRefusal('invalid_client', 'Client authentication failed.')
}

/** For a request that commits nothing of its own: uses up the assertion. Throws as `authenticateClient`. */
export async function useProof(core: Parts, who: AuthenticatedClient, origin: Origin): Promise<void> {
  if (who.proof.length === 0) return
  const outcome = await commit(core, who.proof)
  if (!outcome.done) throw refuseClient(core, who.attempt, who.client, origin)
}

/** The client as the caller of a use case: with all that its agent may do. */
export function callerOf({ client, method }: AuthenticatedClient): AgentCaller {
  return {
    kind: 'agent',
    agentId: client.agentId,
    agentName: client.agentName,
    version: client.version,
    scopes: client.scopes,
    isNarrowed: false,
    // A client is given tokens, which are checked at each use, and grants nothing.
    timed: [],
    agentExpiresAt: client.agentExpiresAt,
    createdAt: client.createdAt,
    policy: client.policy,
    clientId: client.clientId,
    // The audit tells how the client came; nothing else looks at it but for `jwt`.
    method: method,
    generation: client.generation,
  }
}

function rateOf(core: Pick<Parts, 'settings'>): { count: number; perMs: number } {
  return { count: core.settings.tokenFailuresPerMinute, perMs: MINUTE_MS }
}

/** What no client can be called shares one key, so that memory is not filled with it. */
function rateKey(attempt: ClientAttempt, origin: Origin): string {
  const clientId = isId('client', attempt.clientId) ? attempt.clientId : ''
  return `token|${clientId}|${networkOf(origin.ipAddress)}`
}

function tooMany(wait: number): Problem {
  return new Problem('rate_limited', {
    message: 'Too many failed attempts for this client from this address.',
    retryAfterSeconds: wait,
  })
}
