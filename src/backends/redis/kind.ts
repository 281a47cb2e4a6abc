import { createHash, randomBytes } from 'node:crypto'
import Type from 'typebox'
import { accountIn, accountName, credentialOfAccount } from '../account-name.ts'
import { type Backend, BackendError, type Handle, type Host, type Issued, type Kind } from '../kind.ts'
import { requireTls, tlsOf } from '../server-fields.ts'
import { type Client, createClient, createSaver, replyErrorOf } from './client.ts'
import { type Config, config } from './config.ts'
import { isValid, rulesFor } from './rules.ts'

const params = Type.Object({}, { additionalProperties: false })
type Params = Type.Static<typeof params>

/** Redis 7.0 and later, and Valkey: one ACL user per credential, deleted with its connections. */
export const redis: Kind<typeof config, typeof params> = {
  type: 'redis',
  serviceAccounts: ['redis', 'valkey'],
  title: 'Redis and Valkey',
  config,
  params,
  limits: {},
  revocation: 'exact',
  upstream: true,
  scopes: {
    valid: isValid,
    forms: [
      { form: 'read:<prefix>*', gives: 'read the keys that begin with a prefix' },
      { form: 'write:<prefix>*', gives: 'read, write and delete those keys' },
      { form: 'read:<key>', gives: 'read a key, and the keys below it (<key>:…)' },
      { form: 'read', gives: 'read all keys' },
      { form: 'channel:<name>', gives: 'publish and subscribe to a channel, and to those below it' },
      { form: 'script', gives: 'run Lua scripts on the keys of its other scopes' },
      { form: '*', gives: 'do all of this with all keys and channels' },
    ],
    help:
      'read, write or channel, then optionally : and the name of a key or channel, which may contain further colons. A * at ' +
      'the end stands for any continuation. script permits Lua scripts. * is everything but administration.',
  },
  environment: { REDIS_URL: '{url}', REDISCLI_AUTH: '{password}' },
  async complete(settings) {
    requireTls(settings)
    return settings
  },
  open: openRedis,
}

async function openRedis(settings: Config, host: Host): Promise<Backend<Params>> {
  requireTls(settings)
  const client = createClient(settings, host)
  const save = createSaver(settings, client, host)
  return {
    check: (signal) => preflight(client, settings, host, signal),
    async issue({ credentialId, scopes }, signal): Promise<Issued> {
      const username = nameOf(credentialId)
      const password = randomBytes(32).toString('base64url')
      const rules = rulesFor(scopes, settings.database)
      await client.call(signal, 'ACL', 'SETUSER', username, 'reset', 'on', `#${sha256(password)}`, ...rules)
      await save(signal).catch((cause: Error) => {
        // The user is there already.
        throw new BackendError('unavailable', cause.message, { cause })
      })
      return { fields: fieldsOf(settings, username, password), handle: { username }, facts: { username } }
    },
    revoke: (handle, signal) => revokeUser(client, save, handle, signal),
    recover: (credentialId) => ({ username: nameOf(credentialId) }),
    async list(_after, signal) {
      const users = await client.call(signal, 'ACL', 'USERS')
      const names = Array.isArray(users) ? users.map(String) : []
      const items = names.flatMap((username) => {
        const credentialId = credentialOfAccount(username)
        return credentialId === undefined ? [] : [{ credentialId, handle: { username } }]
      })
      return { items }
    },
    rotation: rotationOf(settings, client, save),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

type Save = ReturnType<typeof createSaver>

/**
 * `ACL DELUSER` also closes the connections of the user, and answers how many there were. Before it, a round trip: what another
 * connection sent earlier, perhaps before a crash, the server has then read and carried out, too.
 */
async function revokeUser(client: Client, save: Save, handle: Handle, signal: AbortSignal): Promise<void> {
  const username = accountIn(handle['username'], 'a user')
  await client.call(signal, 'PING')
  await client.call(signal, 'ACL', 'DELUSER', username)
  await save(signal)
}

/** A user may have several passwords, so both are valid in between. */
function rotationOf(settings: Config, client: Client, save: Save): NonNullable<Backend['rotation']> {
  const change = async (rule: string, signal: AbortSignal) => {
    await client.call(signal, 'ACL', 'SETUSER', settings.username, rule)
    await save(signal)
  }
  return {
    async propose() {
      if (settings.password === undefined) {
        throw new BackendError('misconfigured', 'Mayfly logs in without a password.')
      }
      if (!settings.persist) throw new BackendError('misconfigured', NOT_PERSISTENT)
      return { password: randomBytes(32).toString('base64url') }
    },
    adopt: ({ password = '' }, signal) => change(`#${sha256(password)}`, signal),
    async finish({ password = '' }, signal) {
      try {
        await change(`!${sha256(password)}`, signal)
      } catch (error) {
        if (!/remove from the user does not exist/.test(replyErrorOf(error) ?? '')) throw error
      }
    },
  }
}

const NOT_PERSISTENT = 'Without "persist" Redis would forget the new password when it restarts.'
const IS_DEFAULT = 'Mayfly logs in as the user "default". Give it a user of its own, as its page describes.'
const IS_OPEN =
  'The server lets everybody in without a password (its user "default"), so the scopes of credentials protect nothing.'

/** Asks the server what the login may do (`ACL DRYRUN`). Throws `BackendError` that names everything that is missing. */
async function preflight(
  client: Client,
  settings: Config,
  host: Host,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const hello = await client.call(signal, 'HELLO')
  const list = Array.isArray(hello) ? hello.map(String) : []
  const about = (field: string) => list[list.indexOf(field) + 1] ?? ''
  if (!(Number.parseInt(about('version'), 10) >= 7)) {
    throw new BackendError('misconfigured', 'The server is older than Redis 7.0.')
  }
  if (about('mode') !== 'standalone' || about('role') !== 'master') {
    throw new BackendError('misconfigured', 'The server is a replica, a sentinel, or a node of a cluster.')
  }
  const needed = [
    'ACL SETUSER x',
    'ACL DELUSER x',
    'ACL USERS',
    'PING',
    ...(settings.persist ? ['ACL SAVE'] : []),
  ]
  const missing: string[] = []
  for (const command of needed) {
    const answer = await client.call(signal, 'ACL', 'DRYRUN', settings.username, ...command.split(' '))
    const name = command.replace(' x', '').replace(' ', '|').toLowerCase()
    if (answer !== 'OK') missing.push(`+${name}`)
  }
  if (missing.length > 0) {
    throw new BackendError('denied', `The user that Mayfly uses lacks ${missing.join(' ')}.`)
  }
  if (settings.persist) await client.call(signal, 'ACL', 'SAVE')
  const warnings = settings.username === 'default' ? [IS_DEFAULT] : []
  return (await isOpen(settings, host, signal)) ? [...warnings, IS_OPEN] : warnings
}

async function isOpen(settings: Config, host: Host, signal: AbortSignal): Promise<boolean> {
  await using anybody = createClient(settings, host, false)
  try {
    return (await anybody.call(signal, 'PING')) === 'PONG'
  } catch (error) {
    if (replyErrorOf(error) !== undefined) return false
    throw error
  }
}

function fieldsOf(settings: Config, username: string, password: string): NonNullable<Issued['fields']> {
  const host = settings.connect_host ?? settings.host
  const port = settings.connect_port ?? settings.port
  const { database } = settings
  const scheme = tlsOf(settings) === 'disable' ? 'redis' : 'rediss'
  const authority = host.includes(':') ? `[${host}]` : host
  const url = `${scheme}://${username}:${password}@${authority}:${port}/${database}`
  return { username, password, host, port, database, url }
}

/** `mf_` and the body of the credential's id. */
function nameOf(credentialId: string): string {
  return accountName(credentialId)
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
