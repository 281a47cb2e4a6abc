import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Script } from 'node:vm'
import { chunkLoader } from '../../src/cli/load-chunks.ts'

/**
 * Runs `mayfly get` and then `mayfly run` from the chunks in a directory, and stores beside each what V8 had compiled of it when
 * the first of them that loads it was over: `NAME.compiled`. The files belong to the same owner as the code, so they are as
 * safe as the code itself.
 */
const directory = process.argv[2] ?? ''
const scripts = new Map<string, Script>()
const path = (name: string) => join(directory, name)
const require = createRequire(path('mayfly.cjs'))
const load = chunkLoader(
  {
    text: (name) => readFileSync(path(name), 'utf8'),
    compiled: () => undefined,
    path,
    outside: (id) =>
      id === 'mayfly:installation' ? { installation: { version: 'build', command: [] } } : require(id),
    importOutside: (id) => import(id),
  },
  (name, script) => scripts.set(name, script),
)

const credential = {
  id: 'cred_00000000000000000000000000',
  token: 'secret',
  backend: 'demo',
  scopes: ['demo'],
  ttl: '10m',
  created_at: '2000-01-01T00:00:00.000Z',
  expires_at: '2000-01-01T00:10:00.000Z',
}
const server = createServer(({ url }, reply) => {
  const body = url === '/v1/runs' ? { id: 'run_00000000000000000000000000', heartbeat: '10s' } : credential
  reply.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(body))
})
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
const home = mkdtempSync(join(tmpdir(), 'mayfly-build-'))
try {
  const { port } = server.address() as AddressInfo
  for (const name of Object.keys(process.env)) if (name.startsWith('MAYFLY_')) delete process.env[name]
  Object.assign(process.env, { HOME: home, MAYFLY_TOKEN: 'token', MAYFLY_SERVER: `http://127.0.0.1:${port}` })
  for (const name of ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME']) delete process.env[name]
  process.stdout.write = ((...args: unknown[]) => {
    const done = args.at(-1)
    if (typeof done === 'function') done()
    return true
  }) as typeof process.stdout.write
  const compiled = new Set<string>()
  for (const words of [
    ['get', 'demo'],
    ['run', '--env', 'T=demo', '--', process.execPath, '-e', ''],
  ]) {
    process.argv.splice(2, Infinity, ...words)
    await (load('start.cjs') as { start(): Promise<void> }).start()
    if (process.exitCode !== 0) throw new Error(`mayfly ${words[0]} failed`)
    for (const [name, script] of scripts) {
      if (!compiled.has(name)) writeFileSync(`${path(name)}.compiled`, script.createCachedData())
      compiled.add(name)
    }
  }
} finally {
  server.close()
  server.closeAllConnections()
  rmSync(home, { recursive: true })
}
