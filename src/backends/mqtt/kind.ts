import { randomBytes } from 'node:crypto'
import { misconfigured, unavailable, unsupported } from '../../domain/backend-error.ts'
import { hostPort } from '../../domain/network/address.ts'
import { namedAccounts } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Handle, Host, Issued, IssueRequest, ListedPage } from '../kind.ts'
import { addressOf, type Config, config, requireConsistent } from './config.ts'
import { type Control, createControl, NO_CLIENT, namePages, refused, requireDone } from './control.ts'
import { creationOf, deleteGroups, groupOf } from './groups.ts'
import { isOurScope } from './scopes.ts'

const clients = namedAccounts('username', 'a client')

/** Mosquitto with its dynamic security plugin: one client per credential, in a group with a role that equal ones share. */
export const mqtt = defineKind({
  type: 'mqtt',
  serviceAccounts: ['mosquitto'],
  title: 'MQTT (Mosquitto)',
  config,
  revocation: 'exact',
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
  validate: requireConsistent,
  open: openMqtt,
})

async function openMqtt(settings: Config, host: Host): Promise<Opened> {
  const control = createControl(settings, host)
  return {
    check: (signal) => preflight(control, signal),
    issue: (request, signal) => issueClient(control, settings, host.uid, request, signal),
    revoke: (handle, signal) => deleteClient(control, handle, signal),
    recover: clients.recover,
    list: (after, signal) => listClients(control, after, signal),
    keepUp: (signal) => {
      // Each deletion writes the file, and issues wait for that.
      const end = host.now() + host.timeoutMs / 2
      return deleteGroups(control, host.uid, { now: host.now(), isLate: () => host.now() > end }, signal)
    },
    retire: (signal) => deleteGroups(control, host.uid, {}, signal),
    [Symbol.asyncDispose]: () => control[Symbol.asyncDispose](),
  }
}

/**
 * The plugin closes the client's connections in the same command (dynsec_clients__process_delete), and asks for the client at
 * every login and every message from then on, its will included.
 */
async function deleteClient(control: Control, handle: Handle, signal: AbortSignal): Promise<void> {
  const username = clients.nameIn(handle)
  const [deleted, looked] = await control.run(
    [
      { command: 'deleteClient', username },
      { command: 'getClient', username },
    ],
    signal,
  )
  requireDone(deleted)
  if (looked?.error === NO_CLIENT) return
  throw unavailable('The broker still has the client.', { detail: looked?.error ?? '' })
}

/** Throws where the broker's defaults give every client more than its role does. */
async function preflight(control: Control, signal: AbortSignal): Promise<readonly string[]> {
  const [answer] = await control.run([{ command: 'getDefaultACLAccess' }], signal)
  requireDone(answer)
  const acls = answer?.data?.['acls']
  const isOpen = (type: string) =>
    !Array.isArray(acls) || acls.find(({ acltype }) => acltype === type)?.allow !== false
  const type = ['publishClientSend', 'subscribe', 'publishClientReceive'].find(isOpen)
  if (type === undefined) return []
  throw misconfigured(
    `The broker allows ${type} by default, which gives clients more than their roles say; deny it: mosquitto_ctrl dynsec setDefaultACLAccess ${type} deny.`,
  )
}

/** All commands travel in one message, which the plugin carries out in one piece. */
async function issueClient(
  control: Control,
  settings: Config,
  uid: string,
  request: IssueRequest<unknown>,
  signal: AbortSignal,
): Promise<Issued> {
  if (!request.scopes.every(isOurScope)) throw unsupported('A scope is not well formed.')
  const username = clients.nameOf(request.credentialId)
  const password = randomBytes(32).toString('base64url')
  const group = groupOf(uid, request)
  const client = { command: 'createClient', username, password, groups: [{ groupname: group }] }
  const answers = await control.run([...creationOf(group, request.scopes), client], signal)
  // Without the group there is no client.
  if (answers.at(-1)?.error !== undefined) {
    throw refused(client.command, answers.flatMap(({ error = [] }) => error).join('; '))
  }
  return { fields: fieldsOf(settings, username, password), handle: { username }, facts: { username } }
}

/** The plugin sorts the names, but finds them by their position only, which changes as clients end. */
async function listClients(
  control: Control,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ListedPage> {
  for await (const names of namePages(control, 'Clients', signal)) {
    const items = names.filter((name) => name > (after ?? '')).flatMap((name) => clients.listed(name))
    const last = items.at(-1)
    if (last !== undefined) return { items, next: last.handle.username }
  }
  return { items: [] }
}

function fieldsOf(settings: Config, username: string, password: string) {
  const { scheme, host, port } = addressOf(settings.connect_url ?? settings.url)
  const url = `${scheme}://${username}:${password}@${hostPort(host, port)}`
  return { username, password, host, port, url }
}
