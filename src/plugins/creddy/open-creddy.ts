import { isDeepStrictEqual } from 'node:util'
import { type CallOptions, createClient } from '@connectrpc/connect'
import type { Backend, Host } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { Description } from '../description.ts'
import { misconfigured, QUICK_MS, type StartParts } from '../mayfly/client.ts'
import { secretsOf } from '../mayfly/open-plugin.ts'
import { callFault } from '../process/connection.ts'
import type { PluginOptions } from '../process/isolation.ts'
import { type PluginProcess, startProcess } from '../process/process.ts'
import type { PinnedPlugin, Program } from '../process/program.ts'
import { openSupervised } from '../process/supervise.ts'
import { Plugin } from '../proto/creddy_plugin_v1_pb.ts'
import { cleanMessage, hiderOf } from '../text.ts'
import { type CreddySession, creddyBackend } from './creddy.ts'
import { type CreddyClient, readCreddy } from './description.ts'

type Config = Readonly<Record<string, unknown>>

const COOKIE = { key: 'CREDDY_PLUGIN', value: 'creddy' }

/** As `openPlugin`, for a plugin of the protocol `creddy.plugin.v1`. */
export async function openCreddy(
  pinned: PinnedPlugin,
  { isolation, onEnd }: Pick<PluginOptions, 'isolation' | 'onEnd'>,
  config: Config,
  host: Host,
): Promise<Backend> {
  const { name, description } = pinned
  const hide = hiderOf(secretsOf(description, config))
  const parts: StartParts = { name, isolation, log: host.log, hide }
  const supervised = await openSupervised(
    { ...parts, onEnd: (how) => onEnd?.(host.name, how) },
    async (signal) => {
      const program = await pinned.prepare()
      return { process: await startProcess({ ...parts, program, cookie: COOKIE, signal }) }
    },
    ({ process }, signal) => configure(process, pinned, config, { ...parts, signal }),
  )
  return creddyBackend({
    plugin: name,
    ownName: description.type,
    host,
    hide,
    connect: async (signal) => (await supervised.get(signal)).value,
    close: () => supervised.close(),
  })
}

/** The plugin keeps its configuration until its process ends. */
async function configure(
  process: PluginProcess,
  { name, description }: PinnedPlugin,
  config: Config,
  parts: StartParts,
): Promise<CreddySession> {
  return quickly(process, parts, async (client, options) => {
    const said = await readCreddy(client, options)
    if (!isDeepStrictEqual(asStored(said.description, description), description)) {
      throw misconfigured(name, 'describes itself otherwise than when it was added; add it again')
    }
    const { error } = await client.configure({ configJson: JSON.stringify(config) }, options)
    if (error !== '') {
      const detail = cleanMessage(error, parts.hide)
      throw new BackendError('misconfigured', `The plugin ${name} does not accept its configuration.`, {
        detail,
      })
    }
    return { process, client, patterns: said.patterns }
  })
}

/** How we write what it says may have become richer since: what was stored decides which scopes are given. */
function asStored(said: Description, { scopes }: Description): Description {
  return { ...said, scopes: { ...said.scopes, forms: said.scopes.forms.slice(0, scopes.forms.length) } }
}

/** As `describePlugin`, for a program of the protocol `creddy.plugin.v1`. */
export async function describeCreddyPlugin(
  program: Program,
  options: Pick<StartParts, 'isolation' | 'log'>,
): Promise<Description> {
  const parts: StartParts = { ...options, name: 'that was given', hide: (text) => text }
  const process = await startProcess({ ...parts, program, cookie: COOKIE })
  try {
    return (await quickly(process, parts, readCreddy)).description
  } finally {
    await process.stop()
  }
}

async function quickly<T>(
  process: PluginProcess,
  { name, hide, signal }: StartParts,
  run: (client: CreddyClient, options: CallOptions) => Promise<T>,
): Promise<T> {
  try {
    return await run(createClient(Plugin, process.transport), {
      timeoutMs: QUICK_MS,
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    throw callFault(error, name, hide, signal)
  }
}
