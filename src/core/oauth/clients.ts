import type { PublicJwk } from '../../keys/jwt-keys.ts'
import type { Core } from '../context.ts'
import { heldScopes, livingGrants, readAudiences } from '../held-scopes.ts'

/** An agent as the OAuth client that it is. */
export interface Client {
  readonly agentId: string
  readonly agentName: string
  readonly clientId: string
  readonly version: number
  readonly secretHash: string
  /** The enrolled key, for `private_key_jwt`. */
  readonly publicJwk: PublicJwk | undefined
  /** All that the agent has, extra grants included. */
  readonly scopes: readonly string[]
  /** What it may ask tokens for, beside the issuer and the audiences of the server. */
  readonly audiences: readonly string[]
  readonly createdAt: number
  readonly policy: string | null
  /** Epoch ms. */
  readonly agentExpiresAt: number | null
  /** Epoch ms at which the first of its extra grants ends; `Infinity` where none does. */
  readonly grantsEndAt: number
  readonly generation: number
}

/**
 * Clients by their id. As with callers, what was true at one generation of the store is kept for that generation:
 * whatever ends or changes an agent moves it on.
 */
export interface Clients {
  /** From memory alone; undefined when it must be read. */
  known(clientId: string, generation: number): Client | undefined
  /** From the store: as many queries for an unknown client as for a living one. */
  read(clientId: string, generation: number): Promise<Client | undefined>
}

const MAX_KNOWN = 20_000

export function createClients(core: Pick<Core, 'store'>): Clients {
  const known = new Map<string, Client>()

  function isCurrent(client: Client, now: number): boolean {
    return client.grantsEndAt > now && (client.agentExpiresAt === null || client.agentExpiresAt > now)
  }

  return {
    known(clientId, generation) {
      const client = known.get(clientId)
      return client !== undefined && client.generation >= generation && isCurrent(client, core.store.now())
        ? client
        : undefined
    },
    async read(clientId, generation) {
      const row = await core.store.agents.findByClient(clientId)
      const rows = await core.store.agents.grantsOf(row?.id ?? '')
      const now = core.store.now()
      if (row === undefined || (row.expires_at !== null && row.expires_at <= now)) {
        known.delete(clientId)
        return undefined
      }
      const grants = livingGrants(rows, now)
      const client: Client = {
        agentId: row.id,
        agentName: row.name,
        clientId: row.client_id,
        version: row.version,
        secretHash: row.client_secret_hash,
        publicJwk: row.public_jwk === null ? undefined : (JSON.parse(row.public_jwk) as PublicJwk),
        scopes: heldScopes(row, grants),
        audiences: readAudiences(row),
        createdAt: row.created_at,
        policy: row.policy,
        agentExpiresAt: row.expires_at,
        grantsEndAt: Math.min(...grants.map((grant) => grant.expires_at ?? Number.POSITIVE_INFINITY)),
        generation,
      }
      if (known.size >= MAX_KNOWN) known.clear()
      known.set(clientId, client)
      return client
    },
  }
}
