import { describe } from 'vitest'
import type { Backend, Handle, Issued } from '../../src/backends/kind.ts'
import { openBuiltPlugin, startPluginRedis } from '../support/built-plugin.ts'
import { createTestHost } from '../support/host.ts'
import { canBuild, type PluginName } from '../support/plugins/build.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

interface Case {
  readonly scope: string
  /** The user that a handle names. */
  user(handle: Handle): string
  login(issued: Issued): { username: string; password: string }
}

function recovered(prefix: string): Case {
  return {
    scope: 'read:shop',
    // A handle that `recover` made has only the id.
    user: ({ credential_id: id }) => `${prefix}${String(id).slice('cred_'.length)}`,
    login: ({ fields }) => ({
      username: String(fields?.['username']),
      password: String(fields?.['password']),
    }),
  }
}

/** Those with a server behind them. */
const CASES: Record<Exclude<PluginName, 'creddy-github'>, Case> = {
  'go-redis': recovered('go_'),
  'python-redis': recovered('py_'),
  'creddy-redis': {
    scope: 'shop:read',
    user: ({ external_id: id }) => String(id),
    login: ({ secret = '' }) => new URL(secret),
  },
}

for (const name of Object.keys(CASES) as (keyof typeof CASES)[]) {
  describe.skipIf(!(await canBuild(name)))(`the plugin ${name}`, () => {
    describeKind(`${name}, across the boundary of its process`, () => openCase(name, CASES[name]))
  })
}

async function openCase(name: PluginName, { scope, user, login }: Case): Promise<OpenKind> {
  const { kind } = await openBuiltPlugin(name)
  const redis = await startPluginRedis()
  const { host, logged } = createTestHost('cache')
  const opened: Backend[] = []
  const open = async (overrides: object = {}) => {
    const backend = await kind.open({ ...redis.config, ...overrides }, host)
    opened.push(backend)
    return backend
  }
  return {
    kind,
    backend: await open(),
    scopes: [scope],
    logged,
    // A port where nothing listens.
    unreachable: () => open({ address: '127.0.0.1:1' }),
    probe: {
      exists: async (handle) => (await redis.call('ACL', 'GETUSER', user(handle))) !== null,
      use: (issued) => redis.canRead(login(issued), 'shop'),
    },
    async close() {
      await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
      await redis.stop()
    },
  }
}
