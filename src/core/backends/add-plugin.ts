import { BackendError } from '../../domain/backend-error.ts'
import type { PluginArtefact, PluginProtocol, StoredPlugin } from '../../domain/plugin.ts'
import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { noSuchPlugin, type PluginView, viewOf } from './plugins.ts'

export interface AddCommand extends PluginArtefact {
  readonly protocol: PluginProtocol
  readonly origin: string
  /** What it must call itself. */
  readonly name?: string | undefined
  /** The name of its kind here; absent: what it calls itself. */
  readonly as?: string | undefined
}

const IN_USE = 'Another request changed this plugin in the meantime; try again.'

/**
 * Pins an artefact that lies in the directory of plugins: it is started once to describe itself, and from then on only
 * these bytes are started. Replaces the plugin of the same name; its backends are opened again with the new bytes.
 * Throws `not_allowed` for everybody but the user of `admin.sock`, `invalid_request` with what is wrong with the
 * artefact, and `conflict` for a name of another kind.
 */
export async function addPlugin(core: Core, actor: Actor, command: AddCommand): Promise<PluginView> {
  requireSocket(core, actor)
  // One after the other, because each removes files that no plugin needs.
  return core.serialize('plugins', () => pin(core, actor, command))
}

async function pin(core: Core, actor: Actor, command: AddCommand): Promise<PluginView> {
  const plugin = await describeArtefact(core, actor, command)
  try {
    const before = await core.store.plugins.find(plugin.name)
    await requireFree(core, actor, plugin, before)
    const { plugins } = core.store
    const outcome = await commit(core, actor, [
      ...(before === undefined ? plugins.insert(plugin) : plugins.replace(before, plugin)),
      audit(core, actor, { action: 'plugin.added', details: detailsOf(plugin, before) }),
    ])
    if (!outcome.done) throw new Problem('conflict', { message: IN_USE })
    await discardUnused(core, before?.sha256)
    return viewOf(core, plugin.name, plugin)
  } catch (error) {
    await discardUnused(core, plugin.sha256)
    throw error
  }
}

/**
 * Throws `conflict` while it has a backend, whose credentials could never be revoked again; a deleted one counts until
 * its last credential is settled. Throws `not_found`, and `not_allowed` as `addPlugin`.
 */
export async function removePlugin(core: Core, actor: Actor, name: string): Promise<void> {
  requireSocket(core, actor)
  return core.serialize('plugins', () => unpin(core, actor, name))
}

async function unpin(core: Core, actor: Actor, name: string): Promise<void> {
  const plugin = await core.store.plugins.find(name)
  if (plugin === undefined) throw noSuchPlugin()
  await requireUnused(core, name)
  const outcome = await commit(core, actor, [
    ...core.store.plugins.remove(plugin),
    audit(core, actor, { action: 'plugin.removed', details: detailsOf(plugin, undefined) }),
  ])
  if (!outcome.done) {
    await requireUnused(core, name)
    throw new Problem('conflict', { message: IN_USE })
  }
  await discardUnused(core, plugin.sha256)
}

/** Adding a plugin is running a program as the server. Only users who may open the socket can do that anyway. */
function requireSocket(core: Core, actor: Actor): void {
  if (actor.caller.kind === 'local' && actor.caller.method === 'unix_socket') return
  if (actor.caller.kind !== 'local')
    core.denials.record(actor, { action: 'auth.failed', details: { reason: 'plugin_over_network' } })
  throw new Problem('not_allowed', {
    message:
      "Plugins are added and removed only on the server's machine, over its admin.sock and without a token: run mayfly plugin there.",
  })
}

async function describeArtefact(core: Core, actor: Actor, command: AddCommand): Promise<StoredPlugin> {
  const { sha256, runtime, protocol, origin, name, as } = command
  try {
    const { bytes, description } = await core.plugins.describe({ sha256, runtime, protocol })
    const { type, version } = description
    if (name !== undefined && type !== name)
      throw new BackendError('misconfigured', `It is the kind "${type}" and not "${name}".`)
    const addedAt = core.store.now()
    return { name: as ?? type, version, protocol, runtime, sha256, bytes, origin, description, addedAt }
  } catch (error) {
    await discardUnused(core, sha256)
    if (!(error instanceof BackendError)) throw error
    const entry = {
      action: 'plugin.failed',
      outcome: 'failed',
      details: { sha256, origin, reason: error.message },
    } as const
    await commit(core, actor, [audit(core, actor, entry)])
    throw new Problem('invalid_request', {
      message: `The plugin was not added: ${error.message}`,
      detail: error.detail ?? '',
      cause: error,
    })
  }
}

/** Secrets that are stored for one kind must not reach another. */
async function requireFree(
  core: Core,
  { caller }: Actor,
  plugin: StoredPlugin,
  before: StoredPlugin | undefined,
): Promise<void> {
  const { name, protocol } = plugin
  await core.backends.at(caller.generation)
  if (before === undefined && core.backends.kinds.has(name))
    throw new Problem('conflict', {
      message: `This server has a kind "${name}" already, which no plugin can replace. Add the plugin under another name: mayfly plugin add --as NAME.`,
    })
  if (before === undefined) return
  const names = await backendsOf(core, name)
  if (names.length === 0) return
  const fail = (says: string) =>
    new Problem('conflict', {
      message: `The plugin "${name}" ${says}, and the backends ${names.join(', ')} depend on that. Delete them first.`,
    })
  if (before.protocol !== protocol) throw fail(`speaks ${before.protocol}`)
  if (before.description.type !== plugin.description.type)
    throw fail(`is one that calls itself "${before.description.type}"`)
}

async function requireUnused(core: Core, kind: string): Promise<void> {
  const names = await backendsOf(core, kind)
  if (names.length === 0) return
  throw new Problem('conflict', {
    message: `These backends need the plugin to revoke their credentials: ${names.join(', ')}. Delete them first; a deleted one needs it until its last credential is gone.`,
  })
}

async function backendsOf(core: Core, kind: string): Promise<string[]> {
  const open = await core.store.backends.listOpen()
  return open
    .filter(({ type }) => type === kind)
    .map(({ name, endedAt }) => (endedAt === null ? name : `${name} (deleted)`))
}

/** A file that cannot be removed does no harm: nothing refers to it. */
async function discardUnused(core: Core, sha256: string | undefined): Promise<void> {
  if (sha256 === undefined) return
  try {
    const isUsed = (await core.store.plugins.list()).some((plugin) => plugin.sha256 === sha256)
    if (!isUsed) await core.plugins.discard(sha256)
  } catch (error) {
    core.log.warn({ err: error, sha256 }, 'the file of a plugin could not be removed')
  }
}

function detailsOf(plugin: StoredPlugin, before: StoredPlugin | undefined) {
  const { name, version, protocol, sha256, origin } = plugin
  const replaced = before === undefined ? {} : { replaced: before.version, replaced_sha256: before.sha256 }
  const { type } = plugin.description
  const own = type === name ? {} : { own_name: type }
  return { plugin: name, ...own, version, protocol, sha256, origin, ...replaced }
}
