import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Kind } from '../../src/backends/kind.ts'
import { kindOfPlugin } from '../../src/plugins/kind-of-plugin.ts'
import { describePlugin } from '../../src/plugins/mayfly/describe.ts'
import type { Isolation } from '../../src/plugins/process/isolation.ts'
import type { PinnedPlugin, Program } from '../../src/plugins/process/program.ts'
import { createTestHost } from './host.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A module of this repository as a program: it reads the sources, so it may read all of the repository. */
export function nodeProgram(path: string): Program {
  return { runtime: 'node', entry: path, folder: ROOT, close: async () => undefined }
}

export const supportPlugin = (name: string) => join(import.meta.dirname, 'plugins', name)

/** A plugin as the store would have it, described by itself. */
export async function pinnedFrom(program: Program, isolation: Isolation = {}): Promise<PinnedPlugin> {
  const description = await describePlugin(program, { isolation, log: createTestHost('describe').host.log })
  return {
    name: description.type,
    version: description.version,
    protocol: 'mayfly.plugin.v1',
    sha256: '0'.repeat(64),
    description,
    prepare: async () => program,
  }
}

export async function pluginKind(program: Program, isolation: Isolation = {}): Promise<Kind> {
  return kindOfPlugin(await pinnedFrom(program, isolation), {
    isolation,
    log: createTestHost('plugin').host.log,
  })
}

/** The processes of a plugin that has this directory for its socket, without what only started it. */
export async function pidsOf(directory: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const variables = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
      const program = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      const isIts = variables.split('\0').includes(`PLUGIN_UNIX_SOCKET_DIR=${directory}`)
      return isIts && !/^\/usr\/bin\/(?:unshare|setpriv|prlimit)\0/.test(program) ? [Number(pid)] : []
    }),
  )
  return found.flat()
}
