import { type Agent, type AgentBounds, type AgentGrant, nameKey, secretsEnd } from '../../domain/agent.ts'
import { MAX_JWT_BYTES } from '../../domain/limits.ts'
import { policyBounds, tightest } from '../../domain/policy.ts'
import { isRunning } from '../../domain/run.ts'
import { coversAny, type HeldScopes, intersectScopes } from '../../domain/scope.ts'
import { fingerprint, isBearerForm } from '../../keys/bearer.ts'
import { verifyAccessToken } from '../../keys/jwt-keys.ts'
import type { AccessToken, AgentCaller, TokenRun } from '../caller.ts'
import type { Core } from '../context.ts'
import { heldScopes, livingGrants } from '../held-scopes.ts'
import type { Callers, Client } from '../parts.ts'

/** The agent and scopes behind a bearer or a client id. */
interface Known {
  readonly caller: AgentCaller
  /** For a client id only. */
  readonly client?: Client
}

interface TokenPart {
  /** The rotation of the secrets that it is, or came from. */
  readonly rotation: number
  readonly method: AgentCaller['method']
  /** Undefined: all scopes that the agent holds. */
  readonly scopes: readonly string[] | undefined
  readonly expiresAt: number
  readonly accessToken?: AccessToken | undefined
  readonly run?: TokenRun | undefined
}

const MAX_KNOWN = 20_000
const NEVER = Number.POSITIVE_INFINITY
const OPAQUE = { method: 'opaque', scopes: undefined, expiresAt: NEVER } as const
/** The method is set once the client has proven who it is. */
const CLIENT = { method: 'client_secret_basic', scopes: undefined, expiresAt: NEVER } as const

type Parts = Pick<Core, 'store' | 'hasher' | 'issuerKeys' | 'settings' | 'runs'>

export function createCallers(core: Parts): Callers {
  /** By the fingerprint of a bearer, by a client id, or by a name (`namedKey`), which never look alike. */
  let all = new Map<string, Known>()

  function isCurrent({ agentId, generation, method, run, validUntil }: AgentCaller): boolean {
    const { changedAt, now } = core.store
    if (generation < changedAt(agentId) || validUntil <= now()) return false
    if (run !== undefined && generation < changedAt(run.id)) return false
    return method !== 'jwt' || generation >= changedAt('keys')
  }

  function recall(key: string): Known | undefined {
    const known = all.get(key)
    if (known === undefined) return undefined
    if (isCurrent(known.caller)) return known
    all.delete(key)
    return undefined
  }

  /** When it is full, the oldest make room: an agent with very many tokens does not empty it. */
  function remember(into: Map<string, Known>, key: string, known: Known): void {
    if (into.size >= MAX_KNOWN)
      for (const oldest of [...into.keys()].slice(0, MAX_KNOWN / 10)) into.delete(oldest)
    into.set(key, known)
  }

  async function load(bearer: string, key: string, generation: number): Promise<AgentCaller | undefined> {
    // What is read across a `forget` is not kept.
    const into = all
    const found = isBearerForm(bearer)
      ? await fromOpaque(core, bearer, generation)
      : await fromJwt(core, bearer, generation)
    if (found !== undefined) remember(into, key, found)
    return found?.caller
  }

  return {
    find(bearer, generation) {
      if (bearer.length > MAX_JWT_BYTES) return undefined
      const key = fingerprint(bearer)
      const known = recall(key)
      if (known !== undefined) return known.caller
      if (!isBearerForm(bearer) && !bearer.startsWith('eyJ')) return undefined
      return load(bearer, key, generation)
    },
    isCurrent,
    forget() {
      all = new Map()
    },
    async refresh({ agentId, method, scopes, rotation, accessToken, run: before }, generation) {
      const agent = await core.store.agents.findLiving(agentId)
      if (!isAlive(core, agent)) return undefined
      const narrowed = method === 'opaque' ? undefined : scopes
      const run = await livingRun(core, agentId, before?.id)
      if (run === undefined) return undefined
      const expiresAt = Math.min(accessToken?.expiresAt ?? NEVER, run.expiresAt)
      const token = { rotation, method, scopes: narrowed, expiresAt, accessToken, run: run.of }
      const grants = await core.store.agents.grantsOf(agentId)
      return build(core, { agent, grants, token, generation })?.caller
    },
    knownClient: (clientId) => recall(clientId)?.client,
    async readClient(clientId, generation) {
      const into = all
      const agent = await core.store.agents.findByClient(clientId)
      // Also for an unknown client, so that the time of the answer does not tell it from a known one.
      const grants = await core.store.agents.grantsOf(agent?.id ?? '')
      if (!isAlive(core, agent)) return undefined
      const client = clientOf(core, agent, grants, generation)
      remember(into, clientId, { caller: client.caller, client })
      return client
    },
    knownNamed: (name) => recall(namedKey(name))?.client,
    keepNamed: (client) => remember(all, namedKey(client.agent.name), { caller: client.caller, client }),
    clientOf: (agent, grants, generation) => clientOf(core, agent, grants, generation),
  }
}

/** No fingerprint and no client id has a space. */
const namedKey = (name: string) => `name ${nameKey(name)}`

function clientOf(core: Parts, agent: Agent, grants: readonly AgentGrant[], generation: number): Client {
  const token = { ...CLIENT, rotation: agent.rotation }
  return { agent, ...describe(core, { agent, grants, token, generation }, NEVER) }
}

async function fromOpaque(core: Parts, bearer: string, generation: number): Promise<Known | undefined> {
  const agent = await core.store.agents.findByBearer(core.hasher.hash(bearer))
  if (!isAlive(core, agent)) return undefined
  const rotation = rotationOf(agent, ({ bearerHash }) => core.hasher.matches(bearer, bearerHash))
  if (rotation === undefined) return undefined
  const grants = await core.store.agents.grantsOf(agent.id)
  return build(core, { agent, grants, token: { ...OPAQUE, rotation }, generation })
}

async function fromJwt(core: Parts, bearer: string, generation: number): Promise<Known | undefined> {
  const keySet = await core.issuerKeys.at(generation)
  const now = core.store.now()
  const usable = keySet.verifying.filter((key) => key.retiresAt === null || key.retiresAt > now)
  const { issuer } = core.settings
  const verified = await verifyAccessToken(bearer, usable, { issuer, audience: issuer, now })
  if (verified === undefined || (await core.store.tokens.isRevoked(verified.jti))) return undefined
  const agent = await core.store.agents.findLiving(verified.agentId)
  if (!isAlive(core, agent) || agent.clientId !== verified.clientId || agent.id !== verified.subject)
    return undefined
  const run = await livingRun(core, agent.id, verified.run)
  if (run === undefined) return undefined
  const retires = usable.find((key) => key.kid === verified.kid)?.retiresAt ?? NEVER
  const token = {
    rotation: verified.rotation,
    method: 'jwt',
    scopes: verified.scopes,
    expiresAt: Math.min(verified.expiresAt, retires, run.expiresAt),
    accessToken: { jti: verified.jti, kid: verified.kid, expiresAt: verified.expiresAt },
    run: run.of,
  } as const
  const grants = await core.store.agents.grantsOf(agent.id)
  return build(core, { agent, grants, token, generation })
}

/** What a token is bound to. Undefined: its run has ended. A token without one has none, and no end of it. */
async function livingRun(
  { runs, store }: Parts,
  agentId: string,
  id: string | undefined,
): Promise<{ readonly of: TokenRun | undefined; readonly expiresAt: number } | undefined> {
  if (id === undefined) return { of: undefined, expiresAt: NEVER }
  const run = await runs.find(id)
  if (run === undefined || run.agentId !== agentId || !isRunning(run, store.now())) return undefined
  return { of: { id, version: run.version }, expiresAt: run.expiresAt ?? NEVER }
}

interface Found {
  readonly agent: Agent
  /** Also those that have expired. */
  readonly grants: readonly AgentGrant[]
  readonly token: TokenPart
  readonly generation: number
}

/** Undefined: the secrets behind the token have been replaced, and are no longer accepted. */
function build(core: Parts, found: Found): Described | undefined {
  const secretsUntil = secretsEnd(found.agent, found.token.rotation)
  return secretsUntil <= core.store.now() ? undefined : describe(core, found, secretsUntil)
}

type Described = Omit<Client, 'agent'>

function describe(core: Parts, { agent, grants, token, generation }: Found, secretsUntil: number): Described {
  const living = livingGrants(grants, core.store.now())
  const held = heldScopes(agent, living)
  const scopes = token.scopes === undefined ? held : intersectScopes(token.scopes, held)
  const grantsEndAt = Math.min(...living.map((grant) => grant.expiresAt ?? NEVER))
  const caller: AgentCaller = {
    kind: 'agent',
    agentId: agent.id,
    agentName: agent.name,
    version: agent.version,
    scopes,
    isNarrowed: token.scopes !== undefined && !held.every((scope) => coversAny(scopes, scope)),
    timed: timedParts(agent, living),
    agentExpiresAt: agent.expiresAt,
    createdAt: agent.createdAt,
    policy: agent.policy,
    bounds: boundsOf(core, agent),
    clientId: agent.clientId,
    accessToken: token.accessToken,
    run: token.run,
    rotation: token.rotation,
    secretsUntil,
    validUntil: Math.min(token.expiresAt, secretsUntil, agent.expiresAt ?? NEVER, grantsEndAt),
    method: token.method,
    generation,
  }
  return { caller, grants: living, grantsEndAt }
}

/** Which of the agent's secrets it is: the current ones, those before, or (undefined) none. */
export function rotationOf(
  agent: Agent,
  matches: (secrets: Pick<Agent, 'bearerHash' | 'clientSecretHash'>) => boolean,
): number | undefined {
  if (matches(agent)) return agent.rotation
  return agent.previous !== null && matches(agent.previous) ? agent.rotation - 1 : undefined
}

export function boundsOf({ settings }: Pick<Core, 'settings'>, agent: Agent): AgentBounds {
  const policy = settings.policies.find(({ name }) => name === agent.policy)
  return tightest(agent.bounds ?? {}, policy === undefined ? {} : policyBounds(policy))
}

function timedParts(agent: Agent, grants: readonly AgentGrant[]): HeldScopes[] {
  if (grants.every((grant) => grant.expiresAt === null)) return []
  return [
    { scopes: agent.scopes, until: NEVER },
    ...grants.map((grant) => ({ scopes: grant.scopes, until: grant.expiresAt ?? NEVER })),
  ]
}

function isAlive(core: Parts, agent: Agent | undefined): agent is Agent {
  return agent !== undefined && (agent.expiresAt === null || agent.expiresAt > core.store.now())
}
