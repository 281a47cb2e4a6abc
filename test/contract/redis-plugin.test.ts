import { accountName } from '../../src/backends/account-name.ts'
import type { Backend, Handle } from '../../src/backends/kind.ts'
import { createTestHost } from '../support/host.ts'
import { nodeProgram, pluginKind, supportPlugin } from '../support/plugin.ts'
import { openRedisBench } from '../support/redis-kind.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('redis, as a plugin in a process of its own', async (): Promise<OpenKind> => {
  const bench = await openRedisBench()
  const { host, logged } = createTestHost('cache')
  const kind = await pluginKind(nodeProgram(supportPlugin('redis-plugin.ts')))
  const opened: Backend[] = []
  const open = async (overrides: object = {}) => {
    const backend = await kind.open({ ...bench.settings, ...overrides }, host)
    opened.push(backend)
    return backend
  }
  return {
    kind,
    backend: await open(),
    scopes: ['write:shop:*'],
    logged,
    // A port where nothing listens.
    unreachable: () => open({ port: 1 }),
    probe: {
      exists: async (handle: Handle) => {
        const name = handle['username'] ?? accountName(String(handle['credential_id']))
        return (await bench.call('ACL', 'GETUSER', String(name))) !== null
      },
      use: bench.canWrite,
    },
    async close() {
      await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
      await bench.close()
    },
  }
})
