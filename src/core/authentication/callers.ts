import { MAX_JWT_BYTES } from '../../domain/limits.ts'
import { coversAny, type HeldScopes, intersectScopes } from '../../domain/scope.ts'
import type { AgentGrantRow, AgentRow } from '../../store/schema/rows.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { heldScopes, livingGrants, readScopes } from '../held-scopes.ts'
import type { Callers } from '../parts.ts'

interface Known {
  caller: AgentCaller
  /** Epoch ms at which a part of it ends: the token, the agent, or an extra grant. */
  validUntil: number
}

interface TokenPart {
  method: AgentCaller['method']
  /** Undefined: all that the agent has. */
  scopes: readonly string[] | undefined
  expiresAt: number
}

const MAX_KNOWN = 20_000

type Parts = Pick<Core, 'store' | 'hasher' | 'keys' | 'issuerKeys' | 'settings'>

export function createCallers(core: Parts): Callers {
  const known = new Map<string, Known>()

  async function load(bearer: string, key: string, generation: number): Promise<AgentCaller | undefined> {
    const opaque = core.keys.isBearerForm(bearer)
    const found = opaque
      ? await fromOpaque(core, bearer, generation)
      : await fromJwt(core, bearer, generation)
    if (found === undefined) return undefined
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(key, found)
    return found.caller
  }

  return {
    find(bearer, generation) {
      if (bearer.length > MAX_JWT_BYTES) return undefined
      const key = core.keys.fingerprint(bearer)
      const cached = known.get(key)
      if (
        cached !== undefined &&
        cached.caller.generation >= generation &&
        cached.validUntil > core.store.now()
      )
        return cached.caller
      known.delete(key)
      if (!core.keys.isBearerForm(bearer) && !bearer.startsWith('eyJ')) return undefined
      return load(bearer, key, generation)
    },
    async refresh(caller, generation) {
      const row = await core.store.agents.findLiving(caller.agentId)
      if (!isAlive(core, row)) return undefined
      const scopes = caller.method === 'opaque' ? undefined : caller.scopes
      return (await build(core, row, { method: caller.method, scopes, expiresAt: NEVER }, generation)).caller
    },
  }
}

const NEVER = Number.POSITIVE_INFINITY

async function fromOpaque(core: Parts, bearer: string, generation: number): Promise<Known | undefined> {
  const row = await core.store.agents.findByBearer(core.hasher.hash(bearer))
  if (!isAlive(core, row) || !core.hasher.matches(bearer, row.bearer_hash)) return undefined
  return build(core, row, { method: 'opaque', scopes: undefined, expiresAt: NEVER }, generation)
}

async function fromJwt(core: Parts, bearer: string, generation: number): Promise<Known | undefined> {
  const keySet = await core.issuerKeys.at(generation)
  const now = core.store.now()
  const usable = keySet.verifying.filter((key) => key.retiresAt === null || key.retiresAt > now)
  const { issuer } = core.settings
  const token = await core.keys.verifyAccessToken(bearer, usable, { issuer, audience: issuer, now })
  if (token === undefined || keySet.revoked.has(token.jti)) return undefined
  const row = await core.store.agents.findLiving(token.agentId)
  if (!isAlive(core, row) || row.client_id !== token.clientId || row.id !== token.subject) return undefined
  const retires = usable.find((key) => key.kid === token.kid)?.retiresAt ?? NEVER
  return build(
    core,
    row,
    { method: 'jwt', scopes: token.scopes, expiresAt: Math.min(token.expiresAt, retires) },
    generation,
  )
}

async function build(core: Parts, row: AgentRow, token: TokenPart, generation: number): Promise<Known> {
  const now = core.store.now()
  const grants = livingGrants(await core.store.agents.grantsOf(row.id), now)
  const own = heldScopes(row, grants)
  const ends = [token.expiresAt, row.expires_at, ...grants.map((grant) => grant.expires_at)]
  const scopes = token.scopes === undefined ? own : intersectScopes(token.scopes, own)
  const caller: AgentCaller = {
    kind: 'agent',
    agentId: row.id,
    agentName: row.name,
    version: row.version,
    scopes,
    isNarrowed: token.scopes !== undefined && !own.every((scope) => coversAny(scopes, scope)),
    timed: timedParts(row, grants),
    agentExpiresAt: row.expires_at,
    createdAt: row.created_at,
    policy: row.policy,
    clientId: row.client_id,
    method: token.method,
    generation,
  }
  return { caller, validUntil: Math.min(...ends.map((end) => end ?? NEVER)) }
}

function timedParts(row: AgentRow, grants: readonly AgentGrantRow[]): HeldScopes[] {
  if (grants.every((grant) => grant.expires_at === null)) return []
  return [
    { scopes: readScopes(row.scopes), until: NEVER },
    ...grants.map((grant) => ({ scopes: readScopes(grant.scopes), until: grant.expires_at ?? NEVER })),
  ]
}

function isAlive(core: Parts, row: AgentRow | undefined): row is AgentRow {
  return row !== undefined && (row.expires_at === null || row.expires_at > core.store.now())
}
