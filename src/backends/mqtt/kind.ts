import { randomBytes } from 'node:crypto'
import Type from 'typebox'
import { accountName, credentialOfAccount } from '../account-name.ts'
import {
  type Backend,
  BackendError,
  type Handle,
  type Host,
  type Issued,
  type IssueRequest,
  type Kind,
  type ListedPage,
} from '../kind.ts'
import { addressOf, type Config, config, requireConsistent } from './config.ts'
import { type Answer, type Control, createControl } from './control.ts'
import { aclsOf, isOurScope } from './scopes.ts'

const params = Type.Object({}, { additionalProperties: false })
type Params = Type.Static<typeof params>

/** Every client and role that Mayfly creates begins so; no other is ever deleted. */
const PAGE = 1_000

/** Mosquitto with its dynamic security plugin: one client and one role per credential. */
export const mqtt: Kind<typeof config, typeof params> = {
  type: 'mqtt',
  title: 'MQTT (Mosquitto)',
  config,
  params,
  limits: {},
  revocation: 'exact',
  upstream: true,
  scopes: {
    valid: isOurScope,
    forms: [
      { form: 'sensors/<name>:read', gives: 'subscribe to a topic' },
      { form: 'sensors/<name>:write', gives: 'publish to a topic' },
      { form: 'sensors/<name>', gives: 'do both' },
      { form: 'sensors/*:read', gives: 'subscribe to a topic and all topics below it' },
      { form: 'sensors/+/state:read', gives: 'subscribe to the topics that match, with + for any one level' },
      { form: '*', gives: 'publish and subscribe to all topics' },
    ],
    help:
      '<topic>, <topic>:read or <topic>:write. A level of the topic may be +, for any one level; the last may be *, for the ' +
      'topic itself and all below it. Topics that begin with $ are never granted.',
  },
  environment: { MQTT_URL: '{url}', MQTT_USERNAME: '{username}', MQTT_PASSWORD: '{password}' },
  async complete(settings) {
    requireConsistent(settings)
    return settings
  },
  open: openMqtt,
}

async function openMqtt(settings: Config, host: Host): Promise<Backend<Params>> {
  requireConsistent(settings)
  const control = createControl(settings, host)
  return {
    check: (signal) => preflight(control, signal),
    issue: (request, signal) => issueClient(control, settings, request, signal),
    revoke: async (handle, signal) => revokeClient(control, clientOf(handle), signal),
    recover: (credentialId) => ({ username: clientName(credentialId) }),
    list: (after, signal) => listClients(control, Number(after ?? '0'), signal),
    [Symbol.asyncDispose]: () => control[Symbol.asyncDispose](),
  }
}

/** Throws where the broker's defaults give every client more than its role does. */
async function preflight(control: Control, signal: AbortSignal): Promise<readonly string[]> {
  const [answer] = await control.run([{ command: 'getDefaultACLAccess' }], signal)
  if (answer?.error !== undefined) throw refused(answer)
  const acls = answer?.data?.['acls']
  const isOpen = (type: string) =>
    !Array.isArray(acls) || acls.find(({ acltype }) => acltype === type)?.allow !== false
  for (const type of ['publishClientSend', 'subscribe']) {
    if (isOpen(type)) {
      throw new BackendError(
        'misconfigured',
        `The broker allows ${type} by default, so that no credential could be narrowed; set that default to deny.`,
      )
    }
  }
  return []
}

/** Both commands travel in one message, which the plugin carries out in one piece. */
async function issueClient(
  control: Control,
  settings: Config,
  { credentialId, scopes }: IssueRequest<unknown>,
  signal: AbortSignal,
): Promise<Issued> {
  if (!scopes.every(isOurScope)) throw new BackendError('unsupported', 'A scope is not well formed.')
  const username = clientName(credentialId)
  const password = randomBytes(32).toString('base64url')
  const answers = await control.run(
    [
      { command: 'createRole', rolename: username, acls: aclsOf(scopes) },
      { command: 'createClient', username, password, roles: [{ rolename: username }] },
    ],
    signal,
  )
  const failed = answers.filter(({ error }) => error !== undefined)
  if (failed[0] !== undefined) {
    throw failed.length === answers.length ? refused(failed[0]) : halfDone(failed[0])
  }
  return {
    fields: fieldsOf(settings, username, password),
    handle: { username },
    facts: { username },
  }
}

/**
 * Deletes the client, at which the plugin closes its connections (dynsec_clients__process_delete), then the role. What does
 * not exist is success.
 */
async function revokeClient(control: Control, username: string, signal: AbortSignal): Promise<void> {
  const commands = [
    { command: 'deleteClient', username },
    { command: 'deleteRole', rolename: username },
  ]
  for (const answer of await control.run(commands, signal)) {
    if (answer.error !== undefined && !/^(Client|Role) not found$/.test(answer.error)) throw refused(answer)
  }
}

async function listClients(control: Control, offset: number, signal: AbortSignal): Promise<ListedPage> {
  const command = { command: 'listClients', verbose: false, count: PAGE, offset }
  const [answer] = await control.run([command], signal)
  if (answer?.error !== undefined) throw refused(answer)
  const names = answer?.data?.['clients']
  if (!Array.isArray(names)) {
    throw new BackendError('unavailable', 'The broker sent a reply that Mayfly does not understand.')
  }
  const items = names.flatMap((username: unknown) => {
    const credentialId = credentialOf(username)
    return credentialId === undefined ? [] : [{ credentialId, handle: { username: String(username) } }]
  })
  return names.length < PAGE ? { items } : { items, next: String(offset + names.length) }
}

function refused({ command, error }: Answer): BackendError {
  return new BackendError('denied', `The broker refused the command ${command}.`, { detail: error ?? 'none' })
}

function halfDone({ command, error }: Answer): BackendError {
  return new BackendError('unavailable', `The broker carried out everything but ${command}.`, {
    detail: error ?? 'none',
  })
}

/** `mf_` and the body of the credential's id. */
function clientName(credentialId: string): string {
  return accountName(credentialId)
}

function credentialOf(name: unknown): string | undefined {
  return credentialOfAccount(name)
}

function clientOf(handle: Handle): string {
  const username = handle['username']
  if (typeof username !== 'string' || credentialOf(username) === undefined) {
    throw new BackendError('misconfigured', 'The handle does not name a client of Mayfly.')
  }
  return username
}

function fieldsOf(settings: Config, username: string, password: string) {
  const { scheme, host, port } = addressOf(settings.connect_url ?? settings.url)
  const authority = host.includes(':') ? `[${host}]` : host
  const url = `${scheme}://${username}:${password}@${authority}:${port}`
  return { username, password, host, port, url }
}
