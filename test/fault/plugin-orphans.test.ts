import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { builtPlugin, canBuild, type PluginName } from '../support/plugins/build.ts'
import { poll } from '../support/server-process.ts'

const CHILD = join(import.meta.dirname, '..', 'support', 'plugins', 'host-child.ts')

for (const name of ['go-redis', 'creddy-redis', 'python-redis'] satisfies PluginName[]) {
  describe.skipIf(!(await canBuild(name)))(name, () => {
    it('ends when its host is killed', async () => {
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
