import { Type } from 'typebox'
import * as activity from '../activity.ts'
import * as admins from '../admin.ts'
import { name, optionalBody } from '../shared.ts'
import { admin, leadsTo, type Route } from './route.ts'

const KindParam = Type.Object({ name: name('The kind.', 'postgres') })

const ofPlugins = admin('admin: plugins')
const ofKeys = admin('admin: keys')
const ofNotifications = admin('admin: notifications')
const ofServer = admin('admin: server')

/** `/v1/admin`, about the server itself: plugins, notifications, keys, settings and nodes. */
export const ADMIN_SERVER = {
  'POST /v1/admin/plugins': {
    ...ofPlugins('admin:plugins:write', 'plugin.added'),
    id: 'addPlugin',
    summary: 'Add a plugin that lies in `plugin_dir`, or replace its bytes; only over `admin.sock`',
    description:
      'The server starts a copy of the file `<sha256>` in `plugin_dir` once, so that it describes itself, and from then on starts only these bytes. `mayfly plugin add` puts the file there. Any request but one over `admin.sock` without a token is refused.',
    body: admins.AddPlugin,
    replies: { 200: admins.Plugin },
    errors: ['not_allowed', 'conflict'],
    links: leadsTo('name', 'name', 'reloadPlugin', 'removePlugin'),
  },
  'GET /v1/admin/plugins': {
    ...ofPlugins('admin:plugins:write'),
    id: 'listPlugins',
    summary: 'The kinds that are loaded, and where they come from',
    query: admins.PageQuery,
    replies: { 200: Type.Array(admins.Plugin) },
    links: leadsTo('name', '0/name', 'reloadPlugin'),
  },
  'DELETE /v1/admin/plugins/:name': {
    ...ofPlugins('admin:plugins:write', 'plugin.removed'),
    id: 'removePlugin',
    summary: 'Remove a plugin that no backend needs; only over `admin.sock`',
    params: KindParam,
    replies: { 204: Type.Null() },
    errors: ['not_allowed', 'not_found', 'conflict'],
  },
  'POST /v1/admin/plugins/reload': {
    ...ofPlugins('admin:plugins:write', 'plugin.reloaded'),
    id: 'reloadPlugins',
    summary: 'Reopen every backend, those of plugins with new processes',
    replies: { 200: admins.ReloadedPlugins },
    errors: ['conflict'],
    links: leadsTo('name', 'plugins/0/name', 'reloadPlugin'),
  },
  'POST /v1/admin/plugins/:name/reload': {
    ...ofPlugins('admin:plugins:write', 'plugin.reloaded'),
    id: 'reloadPlugin',
    summary: 'Reopen the backends of one kind',
    params: KindParam,
    replies: { 200: admins.ReloadedPlugin },
    errors: ['not_found', 'conflict'],
  },
  'POST /v1/admin/notify/:name/test': {
    ...ofNotifications('admin:notify:write', 'notification.tested'),
    id: 'testReceiver',
    summary: 'Send a test message to a receiver of notifications',
    description: 'It is sent once. The reply says whether the receiver took it.',
    params: admins.NotifyParam,
    replies: { 200: admins.TestedReceiver },
    errors: ['not_found', 'conflict'],
  },
  'GET /v1/admin/keys': {
    ...ofKeys('admin:keys:read'),
    id: 'listAgentKeys',
    summary: 'The public signing keys of all agents',
    query: admins.PageQuery,
    replies: { 200: Type.Array(admins.AgentKey) },
    links: leadsTo('name', '0/name', 'getAgent'),
  },
  'GET /v1/admin/keys/issuer': {
    ...ofKeys('admin:keys:read'),
    id: 'listIssuerKeys',
    summary: 'The keys that sign access tokens or still verify them, the one that signs first',
    replies: { 200: Type.Array(admins.IssuerKey) },
  },
  'POST /v1/admin/keys/rotate': {
    ...ofKeys('admin:keys:write', 'keys.rotated'),
    confirm: true,
    id: 'rotateKeys',
    summary: 'Sign with a new key; issued tokens end at once, or after the grace period',
    body: optionalBody(admins.RotateKeys),
    replies: { 200: admins.RotatedKeys },
    errors: ['conflict'],
  },
  'GET /v1/admin/overview': {
    ...ofServer('admin:metrics:read'),
    id: 'readOverview',
    summary: 'What is alive, what waits and what cannot be ended, at a glance',
    replies: { 200: activity.Overview },
  },
  'GET /v1/admin/nodes': {
    ...ofServer('admin:metrics:read'),
    id: 'listNodes',
    summary: 'The nodes that serve this store, this one first, and the settings in which they differ from it',
    replies: { 200: Type.Array(admins.Node) },
  },
  'GET /v1/admin/settings': {
    ...ofServer('admin:server:read'),
    id: 'listSettings',
    summary: 'The settings in force on the node that answers, and where each comes from; secrets redacted',
    replies: { 200: admins.Settings },
  },
  'POST /v1/admin/reload': {
    ...ofServer('admin:server:write', 'server.reloaded'),
    id: 'reloadServer',
    summary: 'Read the configuration again, and take all of it or nothing; only over `admin.sock`',
    description:
      'Takes the certificate, policies, recipes, limits and the log level of this node. A fault, or a change of any other setting, changes nothing. Any request but one over `admin.sock` without a token is refused.',
    replies: { 200: admins.Reloaded },
    errors: ['not_allowed'],
  },
} as const satisfies Record<string, Route>
