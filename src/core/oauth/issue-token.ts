import { secretsEnd } from '../../domain/agent.ts'
import { MAX_JWT_BYTES } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import type { Run } from '../../domain/run.ts'
import { coversAny, isScope, MAX_SCOPES } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { Client } from '../parts.ts'
import { findRunning } from '../runs/find-run.ts'
import { type AuthenticatedClient, clientActor, refuseClient, requireRate } from './authenticate-client.ts'

/** The fields of the form. */
export interface TokenCommand {
  readonly grant_type?: string | undefined
  readonly scope?: string | undefined
  readonly audience?: string | undefined
  /** RFC 8707: the same as `audience`. */
  readonly resource?: string | undefined
  /** The id of the run that the token is for. */
  readonly run?: string | undefined
}

export interface IssuedToken {
  readonly accessToken: string
  readonly idToken: string | undefined
  /** Whole seconds. */
  readonly expiresIn: number
  /** Space-separated: the scopes of the token, and `openid` if it was requested. */
  readonly scope: string
}

interface Plan {
  readonly scopes: readonly string[]
  readonly openid: boolean
  readonly audience: string
  readonly run: Run | undefined
}

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
  let current = who
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const plan = decide(core, current, command, await findRun(core, current, command))
    const made = await sign(core, current, plan)
    const entry = audit(core, current.actor, {
      action: 'token.issued',
      scopes: plan.scopes,
      ttlMs: made.expiresIn * 1000,
      runId: plan.run?.id ?? null,
      details: { jti: made.jti, audience: plan.audience, ...(plan.openid ? { id_token: true } : {}) },
    })
    const outcome = await commit(core, current.actor, [...guardsOf(current, plan), ...current.proof, entry], {
      code: 'audit_unavailable',
    })
    if (outcome.done) return made
    if (outcome.reason === 'unique') throw refuseClient(core, who.attempt, current.client, who.actor.origin)
    current = await readAgain(core, current)
  }
  throw new Problem('conflict', { message: 'The agent was changed at the same time; try again.' })
}

function guardsOf({ client: { agent } }: AuthenticatedClient, { run }: Plan): Step[] {
  return [
    { op: 'guard', table: 'agents', id: agent.id, version: agent.version },
    ...(run === undefined ? [] : [{ op: 'guard', table: 'runs', id: run.id, version: run.version } as const]),
  ]
}

/** Throws `OAuthProblem` for a run that is unknown, another agent's, or has ended. */
async function findRun(
  core: Core,
  { actor }: AuthenticatedClient,
  { run }: TokenCommand,
): Promise<Run | undefined> {
  if (run === undefined) return undefined
  try {
    return await findRunning(core, actor.caller, run)
  } catch (error) {
    if (!(error instanceof Problem) || (error.code !== 'not_found' && error.code !== 'gone')) throw error
    core.denials.record(actor, { action: 'token.refused', details: { code: 'invalid_grant' } })
    throw new OAuthProblem('invalid_grant', error.message)
  }
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

function decide(core: Core, who: AuthenticatedClient, command: TokenCommand, run: Run | undefined): Plan {
  try {
    if (command.grant_type === undefined) throw invalid('"grant_type" is missing.')
    if (command.grant_type !== 'client_credentials')
      throw new OAuthProblem(
        'unsupported_grant_type',
        'The only grant type of an agent is client_credentials.',
      )
    return {
      ...decideScopes(who.client.caller.scopes, command.scope),
      audience: decideAudience(core.settings, who.client, command),
      run,
    }
  } catch (error) {
    if (error instanceof OAuthProblem)
      core.denials.record(who.actor, { action: 'token.refused', details: { code: error.code } })
    throw error
  }
}

/**
 * Without `scope` the token gets all scopes of the agent, otherwise exactly the requested ones, each of which the agent
 * must cover. `openid` requests an id token and grants nothing: alone, it gives an access token that identifies the
 * agent and permits nothing else.
 */
function decideScopes(
  held: readonly string[],
  asked: string | undefined,
): { scopes: readonly string[]; openid: boolean } {
  if (asked === undefined) return { scopes: held, openid: false }
  const all = [...new Set(asked.split(' '))]
  const scopes = all.filter((scope) => scope !== 'openid')
  if (scopes.length > MAX_SCOPES || !scopes.every(isScope))
    throw new OAuthProblem('invalid_scope', '"scope" must be a list of scopes separated by single spaces.')
  if (!scopes.every((scope) => coversAny(held, scope)))
    throw new OAuthProblem('invalid_scope', 'The agent does not hold a requested scope.')
  return { scopes, openid: scopes.length < all.length }
}

function decideAudience(
  settings: Core['settings'],
  client: Client,
  { audience, resource }: TokenCommand,
): string {
  if (audience !== undefined && resource !== undefined && audience !== resource)
    throw new OAuthProblem('invalid_target', '"audience" and "resource" name different targets.')
  const asked = audience ?? resource ?? settings.issuer
  if (![settings.issuer, ...settings.audiences, ...client.agent.audiences].includes(asked))
    throw new OAuthProblem(
      'invalid_target',
      'This audience is not allowed: an administrator can allow it for one agent, or the server for all.',
    )
  return asked
}

/** Whole seconds. A token that others verify by themselves must not outlive a timed scope. */
function lifetime(
  settings: Core['settings'],
  { client, actor }: AuthenticatedClient,
  plan: Plan,
  now: number,
): number {
  const ends = plan.audience === settings.issuer ? Number.POSITIVE_INFINITY : client.grantsEndAt
  const { agentExpiresAt, secretsUntil } = actor.caller
  const never = Number.POSITIVE_INFINITY
  const left = Math.min(ends, secretsUntil, agentExpiresAt ?? never, plan.run?.expiresAt ?? never) - now
  return Math.floor(Math.min(settings.accessTokenTtlMs, left) / 1000)
}

async function sign(
  core: Core,
  who: AuthenticatedClient,
  plan: Plan,
): Promise<IssuedToken & { jti: string }> {
  const { settings } = core
  const { client, actor } = who
  const { agent } = client
  const { rotation } = actor.caller
  const now = core.store.now()
  const expiresIn = lifetime(settings, who, plan, now)
  // Less than a second is left: the agent has practically ended.
  if (expiresIn < 1) throw new OAuthProblem('invalid_client', 'Client authentication failed.')
  const iat = Math.floor(now / 1000)
  const shared = { iss: settings.issuer, sub: agent.id, iat, exp: iat + expiresIn }
  const jti = core.ids.body()
  const granted = plan.scopes.join(' ')
  const keySet = core.issuerKeys.at(client.caller.generation)
  const { signing } = keySet instanceof Promise ? await keySet : keySet
  const access = signing.sign(
    { typ: 'at+jwt' },
    {
      ...shared,
      // A list also of one (docs/explanation/decisions.md §6.2): some verifiers read nothing else.
      aud: [plan.audience],
      jti,
      client_id: agent.clientId,
      scope: granted,
      agent_id: agent.id,
      agent_name: agent.name,
      scopes: plan.scopes,
      // Ends with the secret that it came from.
      ...(rotation === 0 ? {} : { rotation }),
      ...(plan.run === undefined ? {} : { run: plan.run.id }),
    },
  )
  const idClaims = { ...shared, aud: [agent.clientId], auth_time: iat, agent_name: agent.name }
  const [accessToken, idToken] = await Promise.all([
    access,
    plan.openid ? signing.sign({ typ: 'JWT' }, idClaims) : undefined,
  ])
  if (accessToken.length > MAX_JWT_BYTES)
    throw new OAuthProblem('invalid_scope', 'Too many scopes for one token; request fewer.')
  const scope = plan.openid ? ['openid', ...plan.scopes].join(' ') : granted
  return { accessToken, idToken, expiresIn, scope, jti }
}
