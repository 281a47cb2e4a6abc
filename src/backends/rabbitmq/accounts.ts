import { createHash, randomBytes } from 'node:crypto'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, denied, misconfigured, unavailable, unsupported } from '../../domain/backend-error.ts'
import { isObject } from '../../domain/formats/json.ts'
import { connectionError } from '../../egress/network.ts'
import { namedAccounts } from '../account-name.ts'
import type { JsonReply } from '../json-api.ts'
import type { Handle, Issued, IssueRequest, ListedPage } from '../kind.ts'
import { type Api, isNotFound, unexpected } from './client.ts'
import { amqpOf, type Config } from './config.ts'
import { endConnections } from './connections.ts'
import { planGrants, type VhostGrant } from './scopes.ts'

export const users = namedAccounts('username', 'a user')

export interface Accounts {
  readonly api: Api
  readonly settings: Config
  /** Users whose creation is under way, also where nobody waits for it any more. */
  readonly creating: Map<string, Promise<unknown>>
}

const PAGE = 500

/** The salted SHA-256 of https://www.rabbitmq.com/docs/passwords#computing-password-hash, so that only the hash is sent. */
export function passwordHash(password: string) {
  const salt = randomBytes(4)
  const digest = createHash('sha256').update(salt).update(password, 'utf8').digest()
  return {
    password_hash: Buffer.concat([salt, digest]).toString('base64'),
    hashing_algorithm: 'rabbit_password_hashing_sha256',
  }
}

/** Creates the user, then its permissions: until they are there, it may enter no virtual host. */
export async function issueUser(
  accounts: Accounts,
  { credentialId, scopes }: IssueRequest<unknown>,
  signal: AbortSignal,
): Promise<Issued> {
  const { api, settings } = accounts
  const username = users.nameOf(credentialId)
  const grants = planGrants(settings, scopes)
  if (scopes.length > 0 && grants.length === 0) {
    throw unsupported('The backend grants none of the virtual hosts that the scopes name.')
  }
  const password = randomBytes(32).toString('base64url')
  const created = await createUser(accounts, username, password, signal)
  if (created.status === 400) throw denied('RabbitMQ refused to create a user.')
  requireDone(created)
  for (const grant of grants) {
    const fault = await permit(api, username, grant, signal)
    if (fault === undefined) continue
    // Only with nothing left upstream may the fault be a certain one.
    await revokeUser(accounts, { username }, signal).catch(leaveToRevocation)
    throw fault
  }
  return {
    fields: fieldsOf(settings, username, password, grants[0]?.vhost ?? settings.vhosts[0] ?? '/'),
    handle: { username },
    facts: { username },
  }
}

/**
 * RabbitMQ may carry out a request whose connection was cut, after a later one that deletes the user. So this one always runs to
 * its end, for which a revocation waits.
 */
async function createUser(
  { api, creating }: Accounts,
  username: string,
  password: string,
  signal: AbortSignal,
) {
  const json = { ...passwordHash(password), tags: '' }
  try {
    signal.throwIfAborted()
    const creation = api.call('PUT', `/users/${username}`, new AbortController().signal, { json })
    const settled = creation.catch(() => undefined).then(() => creating.delete(username))
    creating.set(username, settled)
    return await unlessAborted(creation, signal)
  } catch (error) {
    throw error instanceof BackendError ? error : connectionError(error, 'RabbitMQ', signal)
  }
}

/** Returns what RabbitMQ itself refused for certain; throws `unavailable` for the rest. */
async function permit(api: Api, username: string, { vhost, permissions }: VhostGrant, signal: AbortSignal) {
  const path = `/permissions/${encodeURIComponent(vhost)}/${username}`
  const set = async () => {
    const reply = await api.call('PUT', path, signal, { json: permissions })
    if (reply.status !== 400) requireDone(reply)
    return reply
  }
  const reply = await set().catch(leaveToRevocation)
  if (reply.status !== 400) return
  return misconfigured(`RabbitMQ has no virtual host "${vhost}".`, {
    detail: JSON.stringify(reply.body),
  })
}

/** The user exists already: whatever else went wrong, it must be deleted. */
function leaveToRevocation(error: unknown): never {
  if (error instanceof BackendError && (error.fault === 'unavailable' || error.fault === 'timeout'))
    throw error
  throw unavailable('RabbitMQ created the user, but refused what follows.', {
    cause: error,
  })
}

function requireDone(reply: JsonReply): void {
  if (reply.status !== 201 && reply.status !== 204) throw unexpected(reply)
}

/** Deletes the user, so that nobody logs in any more, then ends its connections. A user that does not exist is success. */
export async function revokeUser(
  { api, creating }: Accounts,
  handle: Handle,
  signal: AbortSignal,
): Promise<void> {
  const username = users.nameIn(handle)
  await unlessAborted(Promise.resolve(creating.get(username)), signal).catch((error: unknown) => {
    throw connectionError(error, 'RabbitMQ', signal)
  })
  await deleteUser(api, username, signal).catch((error: unknown) => {
    // Of two that delete a user at the same time, RabbitMQ 3.10 answers one with 500. The next time it is not found.
    if (error instanceof BackendError && error.fault === 'unavailable') {
      return deleteUser(api, username, signal)
    }
    throw error
  })
  await requireGone(api, username, signal)
  await endConnections(api, username, signal)
}

async function deleteUser(api: Api, username: string, signal: AbortSignal): Promise<void> {
  const reply = await api.call('DELETE', `/users/${username}`, signal)
  if (reply.status !== 204 && !isNotFound(reply)) throw unexpected(reply)
}

async function requireGone(api: Api, username: string, signal: AbortSignal): Promise<void> {
  const reply = await api.call('GET', `/users/${username}?columns=name`, signal)
  if (isNotFound(reply)) return
  throw reply.status === 200 ? unavailable('RabbitMQ still has the user.') : unexpected(reply)
}

/** Releases without pages for users (3.10, for one) reply with all of them at once. */
export async function listUsers(
  api: Api,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ListedPage> {
  const page = Number(after ?? '1')
  const query = `page=${page}&page_size=${PAGE}&name=%5Emf_&use_regex=true&columns=name&pagination=true`
  const reply = await api.call('GET', `/users?${query}`, signal)
  const found = reply.items ?? reply.body?.['items']
  if (reply.status !== 200 || !Array.isArray(found)) throw unexpected(reply)
  const items = found.flatMap((user: unknown) => users.listed(isObject(user) ? user['name'] : undefined))
  const pages = Number(reply.body?.['page_count'] ?? 1)
  return page < pages ? { items, next: String(page + 1) } : { items }
}

function fieldsOf(settings: Config, username: string, password: string, vhost: string) {
  const { protocol, hostname, port } = amqpOf(settings)
  const url = `${protocol}//${username}:${password}@${hostname}:${port}/${encodeURIComponent(vhost)}`
  return { username, password, host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), vhost, url }
}
