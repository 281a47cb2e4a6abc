import { denied, misconfigured, unavailable, unsupported } from '../../domain/backend-error.ts'
import type { JsonObject } from '../../domain/formats/json.ts'
import { namedAccounts } from '../account-name.ts'
import { notUnderstood } from '../json-api.ts'
import type { Handle, IssueRequest, ListedPage } from '../kind.ts'
import { type Client, objectAt, type Reply, refusal } from './client.ts'

export const roles = namedAccounts('role', 'a role')

const PAGE = 1_000

export interface NewToken {
  readonly token: string
  readonly accessor: string
  /** Epoch ms, never later than asked. */
  readonly expiresAt: number
}

/**
 * A token role of its own for each credential: by its name every token that was created against it can be found and revoked
 * (Vault API, "Create/update token role"), without a list of accessors, which would give power over all tokens. A role without
 * allowed policies permits those of the caller alone.
 */
export async function createToken(
  client: Client,
  now: number,
  { credentialId, agent, expiresAt }: IssueRequest<unknown>,
  /** All of Mayfly's own if absent. */
  policies: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<NewToken> {
  const role = roles.nameOf(credentialId)
  const seconds = Math.floor((expiresAt - now) / 1000)
  if (seconds < 1) throw unsupported('Vault counts lifetimes in whole seconds.')
  // Orphan: it outlives the login that created it, but never its explicit maximum.
  const settings = { orphan: true, renewable: false, token_type: 'service', token_explicit_max_ttl: seconds }
  const made = await client.call({ method: 'POST', path: `auth/token/roles/${role}`, body: settings }, signal)
  if (made.status >= 400) throw refusal(made, 'Mayfly may not create token roles named mf_….')
  const body = {
    ...(policies === undefined ? {} : { policies }),
    // Vault takes it away even where it was asked for by name.
    no_default_policy: policies?.includes('default') !== true,
    ttl: `${seconds}s`,
    display_name: 'mayfly',
    meta: { credential_id: credentialId, agent_id: agent.id, agent_name: agent.name },
  }
  const reply = await client.call({ method: 'POST', path: `auth/token/create/${role}`, body }, signal)
  if (reply.status >= 400) {
    await undo(client, role, signal)
    throw refusal(reply, 'Mayfly may not create tokens against the roles named mf_….')
  }
  const { client_token: token, accessor, lease_duration: given, policies: has } = objectAt(reply.body, 'auth')
  if (
    typeof token !== 'string' ||
    typeof accessor !== 'string' ||
    typeof given !== 'number' ||
    token === ''
  ) {
    throw notUnderstood('Vault')
  }
  if (policies !== undefined && !(Array.isArray(has) && has.every((one) => policies.includes(one)))) {
    await undo(client, role, signal)
    throw denied('Vault gave the token more policies than were asked for.')
  }
  return { token, accessor, expiresAt: now + Math.min(seconds, given) * 1000 }
}

/** After this nothing exists. Throws `unavailable` otherwise, so that the credential is revoked again. */
export async function undo(client: Client, role: string, signal: AbortSignal): Promise<void> {
  await revokeRole(client, { role }, signal).catch((error: unknown) => {
    throw unavailable('Vault left an issue half done.', { cause: error })
  })
}

/** Ends the lease of a dynamic secret, the role, and then the tokens that were created against it, with all their leases. */
export async function revokeRole(client: Client, handle: Handle, signal: AbortSignal): Promise<void> {
  const role = roles.nameIn(handle)
  const lease = handle['lease']
  const done = (reply: Reply, message: string) => {
    if (reply.status >= 400) throw refusal(reply, message)
  }
  // Without the role no request that is still under way can create another token.
  const path = `auth/token/roles/${role}`
  done(await client.call({ method: 'DELETE', path }, signal), 'Mayfly may not delete token roles named mf_….')
  const sync = { sync: true }
  if (typeof lease === 'string') {
    // With the token it would only be queued.
    const body = { ...sync, lease_id: lease }
    const reply = await client.call({ method: 'POST', path: 'sys/leases/revoke', body }, signal)
    done(reply, 'Mayfly may not revoke the lease of this secret.')
  }
  const prefix = `sys/leases/revoke-prefix/auth/token/create/${role}`
  const reply = await client.call({ method: 'POST', path: prefix, body: sync }, signal)
  done(reply, 'Mayfly may not revoke the tokens of the roles named mf_… (this needs "sudo").')
}

/** OpenBao pages a list by `after` and `limit`; Vault ignores both and sends all. */
export async function listRoles(
  client: Client,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ListedPage> {
  const query = new URLSearchParams({
    list: 'true',
    limit: String(PAGE),
    ...(after === undefined ? {} : { after }),
  })
  const reply = await client.call({ method: 'GET', path: `auth/token/roles?${query}` }, signal)
  // An empty list is 404.
  if (reply.status === 404) return { items: [] }
  if (reply.status >= 400) throw refusal(reply, 'Mayfly may not list token roles.')
  const { keys } = objectAt(reply.body, 'data')
  if (!Array.isArray(keys)) throw notUnderstood('Vault')
  const items = keys.flatMap((role: unknown) => roles.listed(role))
  return keys.length === PAGE ? { items, next: String(keys.at(-1)) } : { items }
}

export interface NewSecret {
  readonly lease: string
  readonly fields: Readonly<Record<string, string | number>>
  /** In ms. */
  readonly lifetime: number
}

/** Reads a dynamic secret with a token of its own, which its lease ends with. */
export async function readSecret(
  client: Client,
  path: string,
  token: string,
  signal: AbortSignal,
): Promise<NewSecret> {
  const reply = await client.call({ method: 'GET', path, token }, signal)
  if (reply.status >= 400) throw refusal(reply, 'Mayfly may not read the path of this secret.')
  const { lease_id: lease, lease_duration: seconds } = reply.body
  if (lease === '') {
    throw misconfigured('The path gives a secret without a lease, which Vault cannot revoke.')
  }
  if (typeof lease !== 'string' || typeof seconds !== 'number') throw notUnderstood('Vault')
  return { lease, fields: fieldsOf(objectAt(reply.body, 'data')), lifetime: seconds * 1000 }
}

function fieldsOf(data: JsonObject): Readonly<Record<string, string | number>> {
  const entries = Object.entries(data).filter(([, value]) => value !== null)
  if (entries.length === 0) throw notUnderstood('Vault')
  const text = (value: unknown) =>
    typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value)
  return Object.fromEntries(entries.map(([name, value]) => [name, text(value)]))
}
