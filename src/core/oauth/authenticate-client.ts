import { isId } from '../../domain/ids.ts'
import { MINUTE_MS } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CommitOptions } from '../../store/engine/engine.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import type { Client } from '../parts.ts'
import {
  type ClientAttempt,
  type ClientMethod,
  type PresentedClient,
  readClientAttempt,
} from './client-attempt.ts'
import { unverifiedPart } from './unverified-jwt.ts'

type Parts = Pick<
  Core,
  'store' | 'callers' | 'hasher' | 'keys' | 'rates' | 'denials' | 'meter' | 'lastUse' | 'settings'
>

export interface AuthenticatedClient {
  readonly client: Client
  readonly method: ClientMethod
  /** Makes the assertion single-use: goes into the commit of the request. */
  readonly proof: readonly Step[]
  readonly attempt: ClientAttempt
}

/** Stands in for an unknown client, so that it takes as long as a wrong secret. No secret has this hash. */
const NO_HASH = '-'.repeat(43)
/** Stand-ins for the keys of an unknown client. Anybody can sign with them (RFC 8037 A.1; the generator of P-256), so they never count. */
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
 * Authenticates a client. An unknown client, a wrong secret and an agent that has ended all get the same
 * `invalid_client`, after the same work. Failures, not successes, are limited per client and network, so that they lock
 * out nobody else. Throws `OAuthProblem`, `invalid_request`, `rate_limited`.
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
  const known = core.callers.knownClient(attempt.clientId, generation)
  const proven = (await prove(core, attempt, known)) ?? (await readAndProve(core, attempt, generation))
  if ('refused' in proven) throw refuseClient(core, attempt, proven.refused, origin)
  core.meter.authenticated(attempt.method, 'ok')
  core.lastUse.touch(proven.client.agent.id, core.store.now())
  return { ...proven, method: attempt.method, attempt }
}

interface Proven {
  readonly client: Client
  readonly proof: readonly Step[]
}

async function readAndProve(
  core: Parts,
  attempt: ClientAttempt,
  generation: number,
): Promise<Proven | { refused: Client | undefined }> {
  const client = await core.callers.readClient(attempt.clientId, generation)
  return (await prove(core, attempt, client)) ?? { refused: client }
}

/** Checks the evidence of this client; does the same work without a client. */
function prove(
  core: Parts,
  attempt: ClientAttempt,
  client: Client | undefined,
): Proven | undefined | Promise<Proven | undefined> {
  if (attempt.method === 'private_key_jwt') return proveByKey(core, attempt, client)
  const matches = core.hasher.matches(attempt.evidence, client?.agent.clientSecretHash ?? NO_HASH)
  return matches && client !== undefined ? { client, proof: [] } : undefined
}

async function proveByKey(
  core: Parts,
  attempt: ClientAttempt,
  client: Client | undefined,
): Promise<Proven | undefined> {
  const { issuer } = core.settings
  const kty = unverifiedPart(attempt.evidence, 0)?.['alg'] === 'ES256' ? 'EC' : 'OKP'
  const enrolled = client?.agent.publicJwk
  const own = enrolled?.['kty'] === kty ? enrolled : undefined
  const verified = await core.keys.verifyAssertion(attempt.evidence, own ?? STAND_IN[kty], {
    clientId: attempt.clientId,
    audiences: [issuer, `${issuer}/oauth/token`],
    now: core.store.now(),
  })
  if (verified === undefined || client === undefined || own === undefined) return undefined
  const id = `assertion:${client.agent.clientId}:${verified.jti}`
  return { client, proof: [core.store.tokens.useProof(id, verified.rememberUntil)] }
}

/** Records the failure and returns the answer. `client`: the client that the request named, if there is one. */
export function refuseClient(
  core: Pick<Parts, 'rates' | 'denials' | 'meter' | 'store' | 'settings'>,
  attempt: ClientAttempt,
  client: Client | undefined,
  origin: Origin,
): OAuthProblem | Problem {
  core.meter.authenticated(attempt.method, 'failed')
  core.denials.record(undefined, origin, {
    action: 'token.refused',
    agent: client?.agent,
    details: {
      code: 'invalid_client',
      method: attempt.method,
      ...(isId('client', attempt.clientId) ? { client_id: attempt.clientId } : {}),
    },
  })
  const wait = core.rates.take(rateKey(attempt, origin), rateOf(core), core.store.now())
  return wait > 0 ? tooMany(wait) : new OAuthProblem('invalid_client', 'Client authentication failed.')
}

/** For a request that commits nothing else: uses up the assertion. Throws as `authenticateClient` does. */
export async function useProof(
  core: Parts,
  who: AuthenticatedClient,
  origin: Origin,
  options: CommitOptions = {},
): Promise<void> {
  if (who.proof.length === 0) return
  const outcome = await commit(core, who.proof, options)
  if (!outcome.done) throw refuseClient(core, who.attempt, who.client, origin)
}

/** The client as the caller of a use case: with all scopes that its agent holds. */
export function callerOf({ client, method }: AuthenticatedClient): AgentCaller {
  return { ...client.caller, method }
}

function rateOf(core: Pick<Parts, 'settings'>): { count: number; perMs: number } {
  return { count: core.settings.tokenFailuresPerMinute, perMs: MINUTE_MS }
}

/** Malformed client ids share one key, so that they cannot fill the memory. */
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
