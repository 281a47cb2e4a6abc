import { secretsEnd } from '../../domain/agent.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { type AuthenticatedClient, clientActor, refuseClient } from './authenticate-client.ts'
import {
  type IssuedToken,
  issuedEntry,
  planToken,
  requireRate,
  signToken,
  type TokenCommand,
  whileInRun,
} from './mint-token.ts'

const TRIES = 3

/**
 * The `client_credentials` grant (RFC 6749 §4.4). The entry and the use of the assertion are durable, in one commit,
 * before the token leaves. Throws `OAuthProblem`, `invalid_request`, `rate_limited`, `conflict`, `audit_unavailable`.
 */
export async function issueToken(
  core: Core,
  who: AuthenticatedClient,
  command: TokenCommand,
): Promise<IssuedToken> {
  requireRate(core, who, 'mint')
  requireGrant(core, who, command)
  let current = who
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const { agent } = current.client
    const plan = await planToken(core, current, command)
    const made = await signToken(core, current, plan, core.settings.accessTokenTtlMs)
    if (made === undefined) throw new OAuthProblem('invalid_client', 'Client authentication failed.')
    const change = [
      { op: 'guard', table: 'agents', id: agent.id, version: agent.version } as const,
      ...whileInRun(plan),
      ...current.proof,
      issuedEntry(core, current, plan, made),
    ]
    const outcome = await commit(core, current.actor, change, { code: 'audit_unavailable' })
    if (outcome.done) return made
    if (outcome.reason === 'unique') throw refuseClient(core, who.attempt, current.client, who.actor.origin)
    current = await readAgain(core, current)
  }
  throw new Problem('conflict', { message: 'The agent was changed at the same time; try again.' })
}

function requireGrant(core: Core, { actor }: AuthenticatedClient, { grant_type: grant }: TokenCommand): void {
  if (grant === undefined) throw invalid('"grant_type" is missing.')
  if (grant === 'client_credentials') return
  core.denials.record(actor, { action: 'token.refused', details: { code: 'unsupported_grant_type' } })
  throw new OAuthProblem(
    'unsupported_grant_type',
    'The only grant type of an agent with secrets is client_credentials.',
  )
}

async function readAgain(core: Core, who: AuthenticatedClient): Promise<AuthenticatedClient> {
  const { attempt, actor } = who
  const generation = await core.store.generation()
  const client = await core.callers.readClient(who.client.agent.clientId, generation)
  if (client === undefined) throw refuseClient(core, attempt, who.client, actor.origin)
  // The secret may have been replaced; an enrolled key stays.
  const { rotation } = attempt.method === 'private_key_jwt' ? client.agent : actor.caller
  if (secretsEnd(client.agent, rotation) <= core.store.now())
    throw refuseClient(core, attempt, client, actor.origin)
  return { ...who, client, actor: clientActor(client, attempt, actor.origin, rotation) }
}
