import { constants } from 'node:fs'
import { chmod, copyFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kind } from '../../src/backends/kind.ts'
import type { PluginProtocol } from '../../src/domain/plugin.ts'
import { describeProgram, kindOfPlugin } from '../../src/plugins/kind-of-plugin.ts'
import type { PinnedPlugin, Program } from '../../src/plugins/process/program.ts'
import { createTestHost } from './host.ts'
import { builtPlugin, type PluginName } from './plugins/build.ts'
import { startRedis } from './redis-server.ts'

export interface BuiltPlugin {
  readonly pinned: PinnedPlugin
  readonly kind: Kind
  /** Of its processes that run. */
  pids(): Promise<number[]>
}

const PROTOCOLS: Record<PluginName, PluginProtocol> = {
  'go-redis': 'mayfly.plugin.v1',
  'python-redis': 'mayfly.plugin.v1',
  'creddy-redis': 'creddy.plugin.v1',
  'creddy-github': 'creddy.plugin.v1',
}

/** A plugin from its sources, started each time from a copy of its own, as the server does. */
export async function openBuiltPlugin(name: PluginName): Promise<BuiltPlugin> {
  const path = await builtPlugin(name)
  const entries = new Set<string>()
  const prepare = async (): Promise<Program> => {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-program-'))
    const entry = join(folder, name)
    await copyFile(path, entry, constants.COPYFILE_FICLONE)
    await chmod(entry, 0o755)
    entries.add(entry)
    const close = async () => {
      entries.delete(entry)
      await rm(folder, { recursive: true, force: true })
    }
    return { runtime: 'executable', entry, folder, close }
  }
  const options = { isolation: {}, log: createTestHost('plugin').host.log }
  const protocol = PROTOCOLS[name]
  const description = await describeProgram(await prepare(), protocol, options)
  const { type, version } = description
  const pinned: PinnedPlugin = {
    ...{ name: type, version, protocol, description, prepare },
    sha256: '0'.repeat(64),
  }
  return { pinned, kind: kindOfPlugin(pinned, options), pids: () => pidsOf(entries) }
}

/** Processes that one of these files began. */
async function pidsOf(entries: ReadonlySet<string>): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      // Python comes before its program; what starts a program has options and `--` before it, too.
      const [first = '', second = ''] = line.split('\0')
      return entries.has(first) || entries.has(second) ? [Number(pid)] : []
    }),
  )
  return found.flat()
}

const LOGIN = { username: 'plugins', password: 'the-password-of-plugins' }

/** A Redis server, and the configuration with which a plugin may make users there. */
export async function startPluginRedis() {
  const server = await startRedis([`user ${LOGIN.username} on >${LOGIN.password} ~* &* +@all`])
  return {
    ...server,
    config: { address: `127.0.0.1:${server.port}`, ...LOGIN },
    /** Of users whose names begin so. */
    users: async (prefix: string) =>
      ((await server.call('ACL', 'USERS')) as string[]).filter((user) => user.startsWith(prefix)),
    /** Whether this user may read a key that begins with the prefix. */
    canRead: async ({ username, password }: { username: string; password: string }, prefix: string) => {
      const client = server.login({ username, password })
      try {
        return (await client.get(`${prefix}:1`)) === null
      } finally {
        client.disconnect()
      }
    },
  }
}

export type PluginRedis = Awaited<ReturnType<typeof startPluginRedis>>
