import { MAX_JWT_BYTES, MINUTE_MS } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { Problem } from '../../domain/problems.ts'
import type { Run } from '../../domain/run.ts'
import { coversAny, isScope, MAX_SCOPES } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Client } from '../parts.ts'
import { findRunning } from '../runs/find-run.ts'

/** The fields of the form that all grants of agents have. */
export interface TokenCommand {
  readonly grant_type?: string | undefined
  readonly scope?: string | undefined
  readonly audience?: string | undefined
  /** RFC 8707: the same as `audience`. */
  readonly resource?: string | undefined
  /** The id of the run that the token is for. */
  readonly run?: string | undefined
}

/** Who has proven that it may have a token. */
export interface TokenHolder {
  readonly client: Client
  /** The client with all scopes that its agent holds. */
  readonly actor: Actor<AgentCaller>
}

export interface TokenPlan {
  readonly scopes: readonly string[]
  readonly openid: boolean
  readonly audience: string
  readonly run: Run | undefined
}

export interface IssuedToken {
  readonly accessToken: string
  readonly idToken: string | undefined
  /** Whole seconds. */
  readonly expiresIn: number
  /** Space-separated: the scopes of the token, and `openid` if it was requested. */
  readonly scope: string
}

/** Not yet recorded: it must not leave before its entry is durable. */
export interface SignedToken extends IssuedToken {
  readonly jti: string
  /** Epoch ms. */
  readonly expiresAt: number
}

/** Whom a denial is recorded for, and what its entry says beside the code: the holder, unless its agent may not exist yet. */
export interface Denied {
  readonly actor: Actor<AgentCaller | undefined>
  readonly details?: Readonly<Record<string, unknown>>
}

function recordDenial(core: Pick<Core, 'denials'>, { actor, details }: Denied, code: string): void {
  core.denials.record(actor, { action: 'token.refused', details: { code, ...details } })
}

/** Limits the tokens that one agent gets or revokes, each of which is a commit. Throws `rate_limited`. */
export function requireRate(
  core: Pick<Core, 'rates' | 'denials' | 'store' | 'settings'>,
  who: TokenHolder,
  what: 'mint' | 'revoke',
): void {
  takeToken(core, who, `${what}|${who.client.agent.id}`, core.settings.tokensPerMinute)
}

/** `count`: a minute. Throws `rate_limited`. */
export function takeToken(
  core: Pick<Core, 'rates' | 'denials' | 'store'>,
  denied: Denied,
  key: string,
  count: number,
): void {
  const wait = core.rates.take(key, { count, perMs: MINUTE_MS }, core.store.now())
  if (wait === 0) return
  recordDenial(core, denied, 'rate_limited')
  const message = 'This agent gets or revokes access tokens too often; use each one until it expires.'
  throw new Problem('rate_limited', { message, retryAfterSeconds: wait })
}

/**
 * What the token is to be. Throws `OAuthProblem`: `invalid_scope`, `invalid_target`, and `invalid_grant` for a run that is unknown,
 * another agent's, or has ended.
 */
export async function planToken(
  core: Core,
  who: TokenHolder,
  command: TokenCommand,
  denied: Denied = who,
): Promise<TokenPlan> {
  try {
    const run = await findRun(core, who, command)
    return {
      ...decideScopes(who.client.caller.scopes, command.scope),
      audience: decideAudience(core.settings, who.client, command),
      run,
    }
  } catch (error) {
    if (error instanceof OAuthProblem) recordDenial(core, denied, error.code)
    throw error
  }
}

async function findRun(core: Core, { actor }: TokenHolder, { run }: TokenCommand): Promise<Run | undefined> {
  if (run === undefined) return undefined
  try {
    return await findRunning(core, actor.caller, run)
  } catch (error) {
    if (!(error instanceof Problem) || (error.code !== 'not_found' && error.code !== 'gone')) throw error
    throw new OAuthProblem('invalid_grant', error.message)
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

/** Holds the commit to the run of the plan. */
export function whileInRun({ run }: TokenPlan): Step[] {
  return run === undefined ? [] : [{ op: 'guard', table: 'runs', id: run.id, version: run.version }]
}

/** The entry, as a step. `more`: what its details say beside the token. */
export function issuedEntry(
  core: Core,
  { actor }: TokenHolder,
  plan: TokenPlan,
  made: SignedToken,
  more: Readonly<Record<string, unknown>> = {},
): Step {
  return audit(core, actor, {
    action: 'token.issued',
    scopes: plan.scopes,
    ttlMs: made.expiresIn * 1000,
    runId: plan.run?.id ?? null,
    details: {
      jti: made.jti,
      audience: plan.audience,
      ...(plan.openid ? { id_token: true } : {}),
      ...more,
    },
  })
}

/** Whole seconds. A token that others verify by themselves must not outlive a timed scope. */
function lifetime(
  settings: Core['settings'],
  { client, actor }: TokenHolder,
  plan: TokenPlan,
  longestMs: number,
  now: number,
): number {
  const ends = plan.audience === settings.issuer ? Number.POSITIVE_INFINITY : client.grantsEndAt
  const { agentExpiresAt, secretsUntil } = actor.caller
  const never = Number.POSITIVE_INFINITY
  const left = Math.min(ends, secretsUntil, agentExpiresAt ?? never, plan.run?.expiresAt ?? never) - now
  return Math.floor(Math.min(longestMs, left) / 1000)
}

/**
 * Signs an access token that lasts for `longestMs` at most, and an id token if the plan has one. Undefined: less than a second
 * is left, so that the agent has practically ended. Throws `OAuthProblem`.
 */
export async function signToken(
  core: Core,
  who: TokenHolder,
  plan: TokenPlan,
  longestMs: number,
): Promise<SignedToken | undefined> {
  const { settings } = core
  const { client, actor } = who
  const { agent } = client
  const { rotation } = actor.caller
  const now = core.store.now()
  const expiresIn = lifetime(settings, who, plan, longestMs, now)
  if (expiresIn < 1) return undefined
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
  return { accessToken, idToken, expiresIn, scope, jti, expiresAt: shared.exp * 1000 }
}
