import { randomBytes } from 'node:crypto'
import { BackendError, denied, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host, Rotation } from '../kind.ts'
import { issueUser, listUsers, passwordHash, revokeUser, users } from './accounts.ts'
import { type Api, createApi, isNotFound, unexpected } from './client.ts'
import { type Config, config, requireConsistent } from './config.ts'
import { givesAnything, isOurScope } from './scopes.ts'

const ADMINISTRATOR = 'administrator'

/** RabbitMQ: one user per credential, with permissions in the virtual hosts that its scopes name. */
export const rabbitmq = defineKind({
  type: 'rabbitmq',
  serviceAccounts: ['rabbitmq'],
  title: 'RabbitMQ',
  config,
  revocation: 'exact',
  scopes: {
    valid: isOurScope,
    gives: givesAnything,
    forms: [
      { form: '<vhost>:<name>:read', gives: 'consume from a queue, and bind from an exchange' },
      { form: '<vhost>:<name>:write', gives: 'publish to an exchange, and bind a queue' },
      { form: '<vhost>:<name>:configure', gives: 'declare and delete a queue or an exchange' },
      { form: '<vhost>:<name>.*:read', gives: 'read queues and exchanges whose names begin so' },
      { form: '<vhost>:<name>', gives: 'do all three with a queue or an exchange' },
      { form: '<vhost>', gives: 'do everything in a virtual host' },
    ],
    help:
      '<vhost>:<name>:<permission>, with configure, write or read as the permission; the default virtual host is /. ' +
      'A name is that of a queue or an exchange, and may end in *. Without a permission it is all three; without a name, ' +
      'all queues and exchanges.',
  },
  environment: { RABBITMQ_URL: '{url}', AMQP_URL: '{url}' },
  validate: requireConsistent,
  open: openRabbit,
})

async function openRabbit(settings: Config, host: Host): Promise<Opened> {
  const api = createApi(settings, host)
  const accounts = { api, settings, creating: new Map<string, Promise<unknown>>() }
  return {
    check: (signal) => preflight(api, settings, signal),
    issue: (request, signal) => issueUser(accounts, request, signal),
    revoke: (handle, signal) => revokeUser(accounts, handle, signal),
    recover: users.recover,
    list: (after, signal) => listUsers(api, after, signal),
    rotation: rotationOf(api, settings),
  }
}

async function preflight(api: Api, { vhosts }: Config, signal: AbortSignal): Promise<readonly string[]> {
  if (!(await ownTags(api, signal)).includes(ADMINISTRATOR)) {
    throw denied('The user that Mayfly logs in as lacks the tag administrator.')
  }
  for (const vhost of vhosts) {
    const reply = await api.call('GET', `/vhosts/${encodeURIComponent(vhost)}?columns=name`, signal)
    if (isNotFound(reply)) {
      throw misconfigured(`RabbitMQ has no virtual host "${vhost}"; see "vhosts".`)
    }
    if (reply.body?.['name'] !== vhost) throw unexpected(reply)
  }
  return []
}

/** A list since RabbitMQ 3.9, a text with commas before. */
async function ownTags(api: Api, signal: AbortSignal, password?: string): Promise<readonly string[]> {
  const reply = await api.call('GET', '/whoami', signal, password === undefined ? {} : { password })
  const tags = reply.body?.['tags']
  if (typeof tags === 'string') return tags.split(',')
  if (!Array.isArray(tags)) throw unexpected(reply)
  return tags.map(String)
}

/** A user has one password: the request that sets the new one also ends the old one. */
function rotationOf(api: Api, { username }: Config): Rotation {
  const works = async (password: string, signal: AbortSignal) => {
    try {
      await ownTags(api, signal, password)
      return true
    } catch (error) {
      if (error instanceof BackendError && error.fault === 'denied') return false
      throw error
    }
  }
  return {
    propose: async () => ({ password: randomBytes(32).toString('base64url') }),
    async adopt({ password = '' }, signal) {
      if (await works(password, signal)) return
      // The request replaces the tags, too.
      const tags = (await ownTags(api, signal)).join(',')
      const json = { ...passwordHash(password), tags }
      const reply = await api.call('PUT', `/users/${encodeURIComponent(username)}`, signal, { json })
      if (reply.status !== 204 && reply.status !== 201) throw unexpected(reply)
      if (!(await works(password, signal))) {
        throw unavailable('RabbitMQ does not accept the new password yet.')
      }
    },
  }
}
