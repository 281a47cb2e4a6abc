import { secretsEnd } from '../../domain/agent.ts'
import { isId } from '../../domain/ids.ts'
import { MINUTE_MS } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { Problem } from '../../domain/problems.ts'
import { verifyAssertion } from '../../keys/proofs.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CommitOptions } from '../../store/engine/engine.ts'
import type { Actor, AgentCaller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import type { Client } from '../parts.ts'
import { type ClientAttempt, type PresentedClient, readClientAttempt } from './client-attempt.ts'
import type { TokenHolder } from './mint-token.ts'
import { unverifiedPart } from './unverified-jwt.ts'

export interface AuthenticatedClient extends TokenHolder {
  /** Makes the assertion single-use: goes into the commit of the request. */
  readonly proof: readonly Step[]
  readonly attempt: ClientAttempt
  /** The generation of the store that this request has seen. */
  readonly generation: number
}

/** A network may fail as often as this many clients. */
const CLIENTS_OF_A_NETWORK = 10
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
 * `invalid_client`, after the same work. Only failures are limited, per client and network and per network, so that they
 * lock out nobody: the secrets have 256 bits. Throws `OAuthProblem`, `invalid_request`, `rate_limited`.
 */
export async function authenticateClient(
  core: Core,
  presented: PresentedClient,
  origin: Origin,
): Promise<AuthenticatedClient> {
  const attempt = readClientAttempt(presented)
  const generation = await core.store.generation()
  const { client, proof } = await identify(core, attempt, generation)
  if (client === undefined || proof === undefined) throw refuseClient(core, attempt, client, origin)
  core.meter.authenticated(attempt.method, 'ok')
  core.lastUse.touch(client.agent.id, { at: core.store.now(), from: origin.ipAddress })
  const actor = clientActor(client, attempt, origin, proof.rotation)
  return { client, actor, proof: proof.steps, attempt, generation }
}

interface Proof {
  readonly steps: readonly Step[]
  /** Of the secret; the current one for a login by key, which no rotation ends. */
  readonly rotation: number
}

interface Identified {
  readonly client: Client | undefined
  /** Undefined: the evidence is not the client's. */
  readonly proof: Proof | undefined
}

/** A refusal takes one check of the evidence and the same queries, whether or not the client is known. */
async function identify(core: Core, attempt: ClientAttempt, generation: number): Promise<Identified> {
  const known = core.callers.knownClient(attempt.clientId)
  if (known !== undefined) {
    const proof = await prove(core, attempt, known)
    if (proof !== undefined) return { client: known, proof }
  }
  const client = await core.callers.readClient(attempt.clientId, generation)
  return { client, proof: known === undefined ? await prove(core, attempt, client) : undefined }
}

/** Checks the evidence of this client; does the same work without a client. */
function prove(
  core: Core,
  attempt: ClientAttempt,
  client: Client | undefined,
): Identified['proof'] | Promise<Identified['proof']> {
  if (attempt.method === 'private_key_jwt') return proveByKey(core, attempt, client)
  const { clientSecretHash = NO_HASH, previous = null } = client?.agent ?? {}
  const isCurrent = core.hasher.matches(attempt.evidence, clientSecretHash)
  const isPrevious = core.hasher.matches(attempt.evidence, previous?.clientSecretHash ?? NO_HASH)
  if (client === undefined || !(isCurrent || isPrevious)) return undefined
  const rotation = isCurrent ? client.agent.rotation : client.agent.rotation - 1
  return secretsEnd(client.agent, rotation) > core.store.now() ? { steps: [], rotation } : undefined
}

async function proveByKey(
  core: Core,
  attempt: ClientAttempt,
  client: Client | undefined,
): Promise<Identified['proof']> {
  const { issuerNames } = core.settings
  const kty = unverifiedPart(attempt.evidence, 0)?.['alg'] === 'ES256' ? 'EC' : 'OKP'
  const enrolled = client?.agent.publicJwk
  const own = enrolled?.['kty'] === kty ? enrolled : undefined
  const verified = await verifyAssertion(attempt.evidence, own ?? STAND_IN[kty], {
    clientId: attempt.clientId,
    audiences: issuerNames.flatMap((name) => [name, `${name}/oauth/token`]),
    now: core.store.now(),
  })
  if (verified === undefined || client === undefined || own === undefined) return undefined
  const id = `assertion:${client.agent.clientId}:${verified.jti}`
  const steps = [core.store.tokens.useProof(id, verified.rememberUntil)]
  return { steps, rotation: client.agent.rotation }
}

/** Records the failure and returns the answer. `client`: the client that the request named, if there is one. */
export function refuseClient(
  core: Pick<Core, 'rates' | 'denials' | 'meter' | 'store' | 'settings'>,
  attempt: ClientAttempt,
  client: Client | undefined,
  origin: Origin,
): OAuthProblem | Problem {
  core.meter.authenticated(attempt.method, 'failed')
  core.denials.record(
    { caller: undefined, origin },
    {
      action: 'token.refused',
      agent: client?.agent,
      details: {
        code: 'invalid_client',
        method: attempt.method,
        // Unknown clients of one network are summarised together, so no id stands for them all.
        client_id: client?.agent.clientId,
      },
    },
  )
  const wait = countFailure(core, attempt, origin)
  return wait > 0 ? tooMany(wait) : new OAuthProblem('invalid_client', 'Client authentication failed.')
}

/** Counts what a network failed to prove, whoever it claimed to be. Returns the seconds to wait when there was too much. */
export function countNetworkFailure(
  core: Pick<Core, 'rates' | 'store' | 'settings'>,
  origin: Origin,
): number {
  const count = core.settings.tokenFailuresPerMinute * CLIENTS_OF_A_NETWORK
  const network = networkOf(origin.ipAddress)
  return core.rates.take(`login|${network}`, { count, perMs: MINUTE_MS }, core.store.now())
}

/** For a request that commits nothing else: uses up the assertion. Throws as `authenticateClient` does. */
export async function useProof(
  core: Core,
  who: AuthenticatedClient,
  options: CommitOptions = {},
): Promise<void> {
  if (who.proof.length === 0) return
  const outcome = await commit(core, who.actor, who.proof, options)
  if (!outcome.done) throw refuseClient(core, who.attempt, who.client, who.actor.origin)
}

/** The client that made this attempt, as the actor of a use case. */
export function clientActor(
  client: Client,
  { method }: ClientAttempt,
  origin: Origin,
  rotation: number,
): Actor<AgentCaller> {
  const secretsUntil = secretsEnd(client.agent, rotation)
  return { caller: { ...client.caller, method, rotation, secretsUntil }, origin }
}

/**
 * Returns the seconds to wait when there were too many. Known and unknown clients count alike, so that the answer does not
 * tell them apart. The network counts first, so that it cannot fill the memory with client ids.
 */
function countFailure(
  core: Pick<Core, 'rates' | 'store' | 'settings'>,
  { clientId }: ClientAttempt,
  origin: Origin,
): number {
  const wait = countNetworkFailure(core, origin)
  if (wait > 0) return wait
  const rate = { count: core.settings.tokenFailuresPerMinute, perMs: MINUTE_MS }
  const client = isId('client', clientId) ? clientId : ''
  return core.rates.take(`token|${client}|${networkOf(origin.ipAddress)}`, rate, core.store.now())
}

export function tooMany(wait: number): Problem {
  return new Problem('rate_limited', {
    message: 'Too many failed attempts from this address.',
    retryAfterSeconds: wait,
  })
}
