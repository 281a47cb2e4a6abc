import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { removeAbandonedPlaces } from '../../src/plugins/process/place.ts'
import { builtPlugin, canBuild, type PluginName } from '../support/plugins/build.ts'
import { poll } from '../support/server-process.ts'

afterEach(() => vi.unstubAllEnvs())

const CHILD = join(import.meta.dirname, '..', 'support', 'plugins', 'host-child.ts')

for (const name of ['go-redis', 'creddy-redis', 'python-redis'] satisfies PluginName[]) {
  describe.skipIf(!(await canBuild(name)))(name, () => {
    it('ends when its host is killed, and the next host removes what is left', async () => {
      await builtPlugin(name)
      // What the host had to leave behind.
      const place = await mkdtemp(join(tmpdir(), 'mayfly-orphans-'))
      const env = { ...process.env, TMPDIR: place }
      const host = spawn(process.execPath, [CHILD, name], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = once(host, 'exit')
      const [line] = await once(createInterface({ input: host.stdout }), 'line')
      const pids = JSON.parse(line) as number[]
      expect(pids).toHaveLength(1)
      expect(pids.every(isRunning)).toBe(true)
      host.kill('SIGKILL')
      await ended
      await poll('the plugin has ended', () => !pids.some(isRunning))
      const left = async () => (await readdir(place)).filter((name) => name.startsWith('mayfly-plugin-'))
      expect(await left()).toHaveLength(1)
      vi.stubEnv('TMPDIR', place)
      await removeAbandonedPlaces()
      expect(await left()).toEqual([])
      await rm(place, { recursive: true })
    })
  })
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
