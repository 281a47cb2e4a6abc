import { createHash, randomBytes } from 'node:crypto'
import { denied, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { hostPort } from '../../domain/network/address.ts'
import { namedAccounts } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Backend, Handle, Host, Issued } from '../kind.ts'
import { requireTls, tlsOf } from '../server-fields.ts'
import { databaseUse } from '../uses.ts'
import { type Client, createClient, createSaver, NO_FILE, replyErrorOf, SAVED } from './client.ts'
import { type Config, config } from './config.ts'
import { isValid, rulesFor } from './rules.ts'

const accounts = namedAccounts('username', 'a user')

/** Redis 7.0 and later, and Valkey: one ACL user per credential, deleted with its connections. */
export const redis = defineKind({
  type: 'redis',
  serviceAccounts: ['redis', 'valkey'],
  title: 'Redis and Valkey',
  config,
  revocation: 'exact',
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
  uses: (settings) => databaseUse('redis', settings),
  validate: requireTls,
  open: openRedis,
})

async function openRedis(settings: Config, host: Host): Promise<Opened> {
  const client = createClient(settings, host)
  const save = createSaver(client, host)
  return {
    check: (signal) => preflight({ client, save, settings, host }, signal),
    async issue({ credentialId, scopes }, signal): Promise<Issued> {
      refuseDatabase(settings)
      const username = accounts.nameOf(credentialId)
      const password = randomBytes(32).toString('base64url')
      const rules = rulesFor(scopes)
      await client.call(signal, 'ACL', 'SETUSER', username, 'reset', 'on', `#${sha256(password)}`, ...rules)
      if (settings.persist) {
        await save(signal).catch((cause: Error) => {
          // The user is there already.
          throw unavailable(cause.message, { cause })
        })
      }
      return { fields: fieldsOf(settings, username, password), handle: { username }, facts: { username } }
    },
    async revoke(handle, signal) {
      const { wasSaved } = await revokeUser(client, handle, signal)
      if (settings.persist) await save(signal)
      else if (wasSaved) await save(signal).catch(passWithoutFile)
    },
    recover: accounts.recover,
    async list(_after, signal) {
      const users = await client.call(signal, 'ACL', 'USERS')
      const names: unknown[] = Array.isArray(users) ? users : []
      return { items: names.flatMap((name) => accounts.listed(name)) }
    },
    rotation: rotationOf(settings, client, save),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

type Save = ReturnType<typeof createSaver>

/**
 * `ACL DELUSER` also closes the connections of the user, in one step. Before it, a round trip: what another connection sent
 * earlier, perhaps before a crash, the server has then read and carried out, too. After it, a look: the user is gone, and if the
 * users of this server were ever saved, by this backend or another one, then also from the file.
 */
async function revokeUser(
  client: Client,
  handle: Handle,
  signal: AbortSignal,
): Promise<{ wasSaved: boolean }> {
  const username = accounts.nameIn(handle)
  await reach(client, signal)
  const deleting = client.call(signal, 'ACL', 'DELUSER', username)
  const looks = [username, SAVED].map((name) => isThere(client, name, signal))
  const [, remains, wasSaved = false] = await Promise.all([deleting, ...looks])
  if (remains) throw denied('The user is still there, although Redis has deleted it.')
  return { wasSaved }
}

/** Whether the server knows the user, of whom it answers what it would permit. */
async function isThere(client: Client, username: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.call(signal, 'ACL', 'DRYRUN', username, 'PING')
    return true
  } catch (error) {
    if (/^ERR User .* not found/.test(replyErrorOf(error) ?? '')) return false
    throw error
  }
}

/**
 * Waits until the server has read what came before. A script that runs for long lets it do nothing else, so that is ended, where
 * Mayfly may: all but one that has written, which ends only with the server.
 */
async function reach(client: Client, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await client.call(signal, 'PING')
      return
    } catch (busy) {
      if (!/^BUSY/.test(replyErrorOf(busy) ?? '')) throw busy
      await client.call(signal, 'SCRIPT', 'KILL').catch((error: unknown) => {
        if (!/^NOTBUSY/.test(replyErrorOf(error) ?? '')) throw busy
      })
    }
  }
}

/** Where there is no file, nothing was saved. */
function passWithoutFile(error: unknown): void {
  if (!NO_FILE.test(replyErrorOf(error) ?? '')) throw error
}

/** A user may have several passwords, so both are valid in between. */
function rotationOf(settings: Config, client: Client, save: Save): NonNullable<Backend['rotation']> {
  // Only on a backend with `persist`, see `propose`.
  const change = async (rule: string, signal: AbortSignal) => {
    await client.call(signal, 'ACL', 'SETUSER', settings.username, rule)
    await save(signal)
  }
  return {
    async propose() {
      if (settings.password === undefined) {
        throw misconfigured('Mayfly logs in without a password.')
      }
      if (!settings.persist) throw misconfigured(NOT_PERSISTENT)
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
const OTHER_DATABASE =
  'Set "database" to 0: every connection begins in database 0, and Redis cannot keep a user out of it.'
const IS_DEFAULT = 'Mayfly logs in as the user "default". Give it a user of its own, as its page describes.'
const IS_OPEN =
  'The server lets everybody in without a password (its user "default"), so the scopes of credentials protect nothing.'

/** Asks the server what the login may do (`ACL DRYRUN`). Throws `BackendError` that names everything that is missing. */
async function preflight(
  { client, save, settings, host }: { client: Client; save: Save; settings: Config; host: Host },
  signal: AbortSignal,
): Promise<readonly string[]> {
  refuseDatabase(settings)
  const hello = await client.call(signal, 'HELLO')
  const list = Array.isArray(hello) ? hello.map(String) : []
  const about = (field: string) => list[list.indexOf(field) + 1] ?? ''
  if (!(Number.parseInt(about('version'), 10) >= 7)) {
    throw misconfigured('The server is older than Redis 7.0.')
  }
  if (about('mode') !== 'standalone' || about('role') !== 'master') {
    throw misconfigured('The server is a replica, a sentinel, or a node of a cluster.')
  }
  const needed = [
    'ACL SETUSER x',
    'ACL DELUSER x',
    'ACL USERS',
    'PING',
    ...(settings.persist || (await isThere(client, SAVED, signal)) ? ['ACL SAVE'] : []),
  ]
  const missing: string[] = []
  for (const command of needed) {
    const answer = await client.call(signal, 'ACL', 'DRYRUN', settings.username, ...command.split(' '))
    const name = command.replace(' x', '').replace(' ', '|').toLowerCase()
    if (answer !== 'OK') missing.push(`+${name}`)
  }
  if (missing.length > 0) {
    throw denied(`The user that Mayfly uses lacks ${missing.join(' ')}.`)
  }
  if (settings.persist) await save(signal)
  const warnings = settings.username === 'default' ? [IS_DEFAULT] : []
  return (await isOpen(settings, host, signal)) ? [...warnings, IS_OPEN] : warnings
}

/** Backends that were stored with another one can still end their credentials. */
function refuseDatabase({ database }: Config): void {
  if (database !== 0) throw misconfigured(OTHER_DATABASE)
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
  const url = `${scheme}://${username}:${password}@${hostPort(host, port)}/${database}`
  return { username, password, host, port, database, url }
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
