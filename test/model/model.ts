/** The expected state of the service, as simple as possible. Times in epoch ms. */
export interface ModelAgent {
  readonly name: string
  readonly id: string
  readonly token: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  readonly expiresAt: number | null
  /** An administrator or the agent itself deleted it. */
  deleted: boolean
}

export interface ModelBackend {
  readonly name: string
  readonly upstream: boolean
  deleted: boolean
}

export interface ModelCredential {
  readonly id: string
  readonly agent: ModelAgent
  readonly backend: ModelBackend
  readonly scopes: readonly string[]
  readonly expiresAt: number
  /** From the first reply to a revocation; undefined before. */
  revokedAt: number | undefined
  /** Revoked for any reason, rather than expired. */
  revoked: boolean
  /** It ended so near its expiry that the server may report either end. */
  uncertain: boolean
}

export interface ModelToken {
  readonly text: string
  readonly agent: ModelAgent
  readonly scopes: readonly string[]
  readonly expiresAt: number
  /** The issuer key has been rotated since. */
  dead: boolean
}

interface ModelKey {
  readonly body: string
  readonly credential: ModelCredential
  readonly token: string
  readonly at: number
}

export interface Model {
  readonly agents: ModelAgent[]
  readonly backends: ModelBackend[]
  readonly credentials: ModelCredential[]
  readonly tokens: ModelToken[]
  /** By agent id and Idempotency-Key. */
  readonly keys: Map<string, ModelKey>
  /** How often each action happened; the audit log must have as many entries. */
  readonly done: Record<
    | 'agent.created'
    | 'backend.created'
    | 'backend.deleted'
    | 'credential.repeated'
    | 'keys.rotated'
    | 'token.issued',
    number
  >
}

export function newModel(): Model {
  const done = {
    'agent.created': 0,
    'backend.created': 0,
    'backend.deleted': 0,
    'credential.repeated': 0,
    'keys.rotated': 0,
    'token.issued': 0,
  }
  return { agents: [], backends: [], credentials: [], tokens: [], keys: new Map(), done }
}

/** Real time passes while a sequence runs: this near to a boundary, either reply is right. */
const BLUR_MS = 3_000

export function isNear(now: number, boundary: number | null): boolean {
  return boundary !== null && Math.abs(now - boundary) < BLUR_MS
}

export function isAlive(agent: ModelAgent, now: number): boolean {
  return !agent.deleted && (agent.expiresAt === null || agent.expiresAt > now)
}

export function statusOf(credential: ModelCredential, now: number): 'active' | 'expired' | 'revoked' {
  if (credential.revoked) return 'revoked'
  return credential.expiresAt > now ? 'active' : 'expired'
}

/** Applies to one credential the end of all credentials of its agent or backend. */
export function endNow(credential: ModelCredential, now: number): void {
  if (credential.revoked) return
  if (isNear(now, credential.expiresAt)) credential.uncertain = true
  else if (credential.expiresAt > now) credential.revoked = true
}
