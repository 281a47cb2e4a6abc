import { MAX_JWT_BYTES } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny, isScope, MAX_SCOPES } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import { type AuthenticatedClient, callerOf, type OAuthCore, refuseClient } from './authenticate-client.ts'
import type { Client } from './clients.ts'
import { OAuthRefusal } from './oauth-refusal.ts'

/** As the form has them. */
export interface TokenCommand {
  readonly grant_type?: string | undefined
  readonly scope?: string | undefined
  readonly audience?: string | undefined
  /** RFC 8707: the same as `audience`. */
  readonly resource?: string | undefined
}

export interface IssuedToken {
  readonly accessToken: string
  readonly idToken: string | undefined
  /** Whole seconds. */
  readonly expiresIn: number
  /** Space-separated; what the token may do, and `openid` where it was asked. */
  readonly scope: string
}

type Parts = Pick<
  OAuthCore,
  'store' | 'ids' | 'clients' | 'issuerKeys' | 'denials' | 'rates' | 'meter' | 'settings'
>

interface Plan {
  readonly scopes: readonly string[]
  readonly openid: boolean
  readonly audience: string
}

const TRIES = 3

/**
 * The `client_credentials` grant (RFC 6749 §4.4). The entry is durable before the token is handed out, in one
 * commit with the use of the assertion. Throws `OAuthRefusal`, `invalid_request`, `conflict`, `audit_unavailable`.
 */
export async function issueToken(
  core: Parts,
  who: AuthenticatedClient,
  command: TokenCommand,
  origin: Origin,
): Promise<IssuedToken> {
  let current = who
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const plan = decide(core, current, command, origin)
    const made = await sign(core, current.client, plan)
    const entry = audit(core, callerOf(current), origin, {
      action: 'token.issued',
      scopes: plan.scopes,
      ttlMs: made.expiresIn * 1000,
      details: { jti: made.jti, audience: plan.audience, ...(plan.openid ? { id_token: true } : {}) },
    })
    const guard: Step = {
      op: 'guard',
      table: 'agents',
      id: current.client.agentId,
      version: current.client.version,
    }
    const outcome = await commit(core, [guard, ...current.proof, entry], { code: 'audit_unavailable' })
    if (outcome.done) return made
    if (outcome.reason === 'unique') throw refuseClient(core, who.attempt, current.client, origin)
    current = { ...current, client: await anew(core, who, origin) }
  }
  throw new Problem('conflict', { message: 'The agent is being changed; try again.' })
}

async function anew(core: Parts, who: AuthenticatedClient, origin: Origin): Promise<Client> {
  const client = await core.clients.read(who.client.clientId, await core.store.generation())
  if (client === undefined) throw refuseClient(core, who.attempt, who.client, origin)
  return client
}

function decide(core: Parts, who: AuthenticatedClient, command: TokenCommand, origin: Origin): Plan {
  try {
    if (command.grant_type === undefined) throw invalid('"grant_type" is missing.')
    if (command.grant_type !== 'client_credentials')
      throw new OAuthRefusal('unsupported_grant_type', 'The only grant type is client_credentials.')
    return {
      ...decideScopes(who.client.scopes, command.scope),
      audience: decideAudience(core.settings, who.client, command),
    }
  } catch (error) {
    if (error instanceof OAuthRefusal)
      core.denials.record(callerOf(who), origin, { action: 'token.refused', details: { code: error.code } })
    throw error
  }
}

/**
 * None asked: all that the agent has. Asked: exactly those, each of which the agent must cover. `openid` asks for an
 * id token and grants nothing: alone, it gets an access token that says who the agent is and may do nothing more.
 */
function decideScopes(
  held: readonly string[],
  asked: string | undefined,
): { scopes: readonly string[]; openid: boolean } {
  if (asked === undefined) return { scopes: held, openid: false }
  const all = [...new Set(asked.split(' '))]
  const scopes = all.filter((scope) => scope !== 'openid')
  if (scopes.length > MAX_SCOPES || !scopes.every(isScope))
    throw new OAuthRefusal('invalid_scope', 'The scope is not a list of scopes with single spaces between.')
  if (!scopes.every((scope) => coversAny(held, scope)))
    throw new OAuthRefusal('invalid_scope', 'A requested scope is not among those of the agent.')
  return { scopes, openid: scopes.length < all.length }
}

function decideAudience(
  settings: Parts['settings'],
  client: Client,
  { audience, resource }: TokenCommand,
): string {
  if (audience !== undefined && resource !== undefined && audience !== resource)
    throw new OAuthRefusal('invalid_target', '"audience" and "resource" name different targets.')
  const asked = audience ?? resource ?? settings.issuer
  if (![settings.issuer, ...settings.audiences, ...client.audiences].includes(asked))
    throw new OAuthRefusal(
      'invalid_target',
      'No tokens for this audience: an administrator allows it to an agent, or the server to all.',
    )
  return asked
}

/** Whole seconds. What others verify by themselves must not outlive a scope that is granted for a time. */
function lifetime(settings: Parts['settings'], client: Client, plan: Plan, now: number): number {
  const ends = plan.audience === settings.issuer ? Number.POSITIVE_INFINITY : client.grantsEndAt
  const left = Math.min(ends, client.agentExpiresAt ?? Number.POSITIVE_INFINITY) - now
  return Math.floor(Math.min(settings.accessTokenTtlMs, left) / 1000)
}

async function sign(core: Parts, client: Client, plan: Plan): Promise<IssuedToken & { jti: string }> {
  const { settings } = core
  const now = core.store.now()
  const expiresIn = lifetime(settings, client, plan, now)
  // Less than a second is left: it has as good as ended.
  if (expiresIn < 1) throw new OAuthRefusal('invalid_client', 'Client authentication failed.')
  const iat = Math.floor(now / 1000)
  const shared = { iss: settings.issuer, sub: client.agentId, iat, exp: iat + expiresIn }
  const jti = core.ids.body()
  const granted = plan.scopes.join(' ')
  const keySet = core.issuerKeys.at(client.generation)
  const { signing } = keySet instanceof Promise ? await keySet : keySet
  const access = signing.sign(
    { typ: 'at+jwt' },
    {
      ...shared,
      aud: plan.audience,
      jti,
      client_id: client.clientId,
      scope: granted,
      agent_id: client.agentId,
      agent_name: client.agentName,
      scopes: plan.scopes,
    },
  )
  const idClaims = { ...shared, aud: [client.clientId], auth_time: iat, agent_name: client.agentName }
  const [accessToken, idToken] = await Promise.all([
    access,
    plan.openid ? signing.sign({ typ: 'JWT' }, idClaims) : undefined,
  ])
  if (accessToken.length > MAX_JWT_BYTES)
    throw new OAuthRefusal('invalid_scope', 'So many scopes do not fit into a token: ask for fewer.')
  const scope = plan.openid ? ['openid', ...plan.scopes].join(' ') : granted
  return { accessToken, idToken, expiresIn, scope, jti }
}
