import type { Handle } from '../../src/backends/kind.ts'
import { redis } from '../../src/backends/redis/kind.ts'
import { openRedisBench } from '../support/redis-kind.ts'
import { redisTricks } from '../support/redis-tricks.ts'
import { startRewritingProxy } from '../support/rewriting-proxy.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

for (const persist of [false, true]) {
  describeKind(`redis, ${persist ? 'with' : 'without'} its ACL file`, async (): Promise<OpenKind> => {
    const bench = await openRedisBench()
    // A command of the same length that changes nothing.
    const proxy = await startRewritingProxy(bench.port, { DELUSER: 'SETUSER' })
    return {
      kind: redis as unknown as OpenKind['kind'],
      backend: await bench.open({ persist }),
      config: { ...bench.settings, persist },
      scopes: ['write:shop:*', 'channel:shop', 'script'],
      logged: bench.logged,
      // A port where nothing listens.
      unreachable: () => bench.open({ port: 1 }),
      probe: {
        exists: async (handle: Handle) =>
          (await bench.call('ACL', 'GETUSER', String(handle['username']))) !== null,
        use: bench.canWrite,
      },
      tricks: redisTricks(bench),
      disarmed: () => bench.open({ persist, port: proxy.port }),
      async close() {
        await bench.close()
        await proxy.close()
      },
    }
  })
}
