import type { Handle } from '../../src/backends/kind.ts'
import { redis } from '../../src/backends/redis/kind.ts'
import { openRedisBench } from '../support/redis-kind.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

for (const persist of [false, true]) {
  describeKind(`redis, ${persist ? 'with' : 'without'} its ACL file`, async (): Promise<OpenKind> => {
    const bench = await openRedisBench()
    return {
      kind: redis as unknown as OpenKind['kind'],
      backend: await bench.open({ persist }),
      scopes: ['write:shop:*'],
      logged: bench.logged,
      // A port where nothing listens.
      unreachable: () => bench.open({ port: 1 }),
      probe: {
        exists: async (handle: Handle) =>
          (await bench.call('ACL', 'GETUSER', String(handle['username']))) !== null,
        use: bench.canWrite,
      },
      close: bench.close,
    }
  })
}
