import { secretsEnd } from '../../domain/agent.ts'
import { isRunning } from '../../domain/run.ts'
import { coversAny, intersectScopes } from '../../domain/scope.ts'
import { isBearerForm } from '../../keys/bearer.ts'
import type { Core } from '../context.ts'
import type { Client } from '../parts.ts'
import { type AuthenticatedClient, useProof } from './authenticate-client.ts'
import { type IdentifiedToken, identifyToken } from './identify-token.ts'

/** RFC 7662 §2.2; times in whole seconds. */
export interface ActiveToken {
  readonly active: true
  readonly token_type: 'Bearer'
  readonly scope: string
  readonly client_id: string
  readonly sub: string
  readonly iss: string
  readonly aud: string | readonly string[]
  readonly iat: number
  /** Absent for a permanent token. */
  readonly exp?: number
  readonly jti?: string
  readonly agent_id: string
  readonly agent_name: string
  /** The run that it is for. */
  readonly run?: string
}
export type Introspection = ActiveToken | { readonly active: false }

const INACTIVE = { active: false } as const
/** Lets a client, for example a resource server, introspect the tokens of others. */
const READ_ALL = 'admin:tokens:read'

/**
 * The current state of a token. An unknown token, one that has ended and one of another agent give `{ active: false }`
 * and nothing else. Throws as `authenticateClient` does for an assertion that was used before.
 */
export async function introspectToken(
  core: Core,
  who: AuthenticatedClient,
  text: string,
): Promise<Introspection> {
  await useProof(core, who)
  const { client, generation } = who
  const found = isBearerForm(text)
    ? await describeBearer(core, text, generation)
    : await describeJwt(core, await identifyToken(core, text, generation), generation)
  if (found === undefined || !maySee(client, found.agent_id)) return INACTIVE
  return found
}

function maySee(client: Client, agentId: string): boolean {
  return client.agent.id === agentId || coversAny(client.caller.scopes, READ_ALL)
}

async function describeBearer(
  core: Core,
  text: string,
  generation: number,
): Promise<ActiveToken | undefined> {
  const caller = await core.callers.find(text, generation)
  if (caller === undefined) return undefined
  const end = Math.min(caller.agentExpiresAt ?? Number.POSITIVE_INFINITY, caller.secretsUntil)
  return {
    ...common(core, { id: caller.agentId, name: caller.agentName }, caller.clientId),
    scope: caller.scopes.join(' '),
    iat: Math.floor(caller.createdAt / 1000),
    ...(Number.isFinite(end) ? { exp: Math.floor(end / 1000) } : {}),
  }
}

function common(core: Core, agent: { id: string; name: string }, clientId: string) {
  const { issuer } = core.settings
  return {
    active: true,
    token_type: 'Bearer',
    client_id: clientId,
    sub: agent.id,
    iss: issuer,
    aud: issuer,
    agent_id: agent.id,
    agent_name: agent.name,
  } as const
}

async function describeJwt(
  core: Core,
  found: IdentifiedToken | undefined,
  generation: number,
): Promise<ActiveToken | undefined> {
  switch (found?.kind) {
    case undefined:
      return undefined
    case 'access':
      return describeAccess(core, found, generation)
    case 'credential':
      return describeCredential(core, found)
    default: {
      const never: never = found
      return never
    }
  }
}

async function describeAccess(
  core: Core,
  { token }: Extract<IdentifiedToken, { kind: 'access' }>,
  generation: number,
): Promise<ActiveToken | undefined> {
  const owner =
    core.callers.knownClient(token.clientId) ?? (await core.callers.readClient(token.clientId, generation))
  if (owner === undefined || owner.agent.id !== token.agentId) return undefined
  const secretsUntil = secretsEnd(owner.agent, token.rotation)
  if (secretsUntil <= core.store.now()) return undefined
  const run = token.run === undefined ? undefined : await core.runs.find(token.run)
  if (token.run !== undefined && (run?.agentId !== owner.agent.id || !isRunning(run, core.store.now())))
    return undefined
  return {
    ...common(core, owner.agent, owner.agent.clientId),
    ...(run === undefined ? {} : { run: run.id }),
    aud: token.audience,
    // The scopes that the agent still holds, not those at the time of issue.
    scope: intersectScopes(token.scopes, owner.caller.scopes).join(' '),
    iat: Math.floor(token.issuedAt / 1000),
    exp: Math.floor(Math.min(token.expiresAt, secretsUntil) / 1000),
    jti: token.jti,
  }
}

/** A token signed by one of our backends: returns its own claims, with the state of the credential. */
function describeCredential(
  core: Core,
  { credential, claims }: Extract<IdentifiedToken, { kind: 'credential' }>,
): ActiveToken | undefined {
  const endsAt = Math.min(credential.expiresAt, credential.upstreamExpiresAt ?? credential.expiresAt)
  if (credential.state !== 'active' || endsAt <= core.store.now()) return undefined
  const { iss, aud, iat, exp, sub, scope, client_id } = claims
  if (typeof iss !== 'string' || typeof iat !== 'number' || typeof exp !== 'number') return undefined
  return {
    ...common(core, { id: credential.agentId, name: credential.agentName }, String(client_id)),
    iss,
    aud: typeof aud === 'string' ? aud : (aud as string[]),
    sub: String(sub),
    scope: String(scope),
    iat,
    exp,
    jti: credential.id,
  }
}
