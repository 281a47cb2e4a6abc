/** What the service is believed to hold; as simple as it can be. Times in epoch ms. */
export interface ModelAgent {
  readonly name: string
  readonly id: string
  readonly token: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  readonly expiresAt: number | null
  /** Deleted by an administrator or itself. */
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
  /** As the first answer said; undefined while it has not been revoked. */
  revokedAt: number | undefined
  /** Known to have been revoked, by whatever cause, and not merely to have expired. */
  revoked: boolean
  /** It ended so near its expiry that either may be said. */
  unsure: boolean
}

export interface ModelToken {
  readonly text: string
  readonly agent: ModelAgent
  readonly scopes: readonly string[]
  readonly expiresAt: number
  /** Its key was rotated away. */
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
  /** By agent id and key. */
  readonly keys: Map<string, ModelKey>
  /** How often each was done, as the audit must have it. */
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

/** Real time goes on while a sequence runs: within this of a boundary, either answer is right. */
export const BLUR_MS = 3_000

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

/** What a revocation of everything that an agent or a backend has does to one of them. */
export function endNow(credential: ModelCredential, now: number): void {
  if (credential.revoked) return
  if (isNear(now, credential.expiresAt)) credential.unsure = true
  else if (credential.expiresAt > now) credential.revoked = true
}
