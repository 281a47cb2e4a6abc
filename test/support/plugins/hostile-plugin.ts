import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { Type } from 'typebox'
import { defineKind, servePlugin } from '../../../src/plugin-sdk/plugin.ts'

/** A plugin that tries what it must not; its check warns of each attempt: "<attempt>: got" or "<attempt>: refused". */
const config = Type.Object(
  {
    master_key: Type.String({ 'x-upstream': true }),
    store: Type.String(),
    admin_socket: Type.String(),
    /** Its process. */
    server: Type.Integer(),
    other_socket: Type.String(),
    /** Occurs in files that the server has open, and in its environment. */
    marker: Type.String(),
    /** A file that it tries to make. */
    trace: Type.String(),
  },
  { additionalProperties: false },
)
type Targets = Type.Static<typeof config>

const OWN = [
  'MAYFLY_PLUGIN',
  'PLUGIN_PROTOCOL_VERSIONS',
  'PLUGIN_UNIX_SOCKET_DIR',
  'TMPDIR',
  'PLUGIN_CLIENT_CERT',
]

/** Each returns whether it got what it wanted. */
const ATTEMPTS: Record<string, (targets: Targets) => unknown> = {
  'master key': ({ master_key: file }) => readFileSync(file).length > 0,
  store: ({ store }) => readFileSync(store).length > 0,
  'store as a database': async ({ store }) => {
    const { DatabaseSync } = await import('node:sqlite')
    return (
      new DatabaseSync(store, { readOnly: true }).prepare('SELECT name FROM sqlite_master').all().length > 0
    )
  },
  'admin.sock': ({ admin_socket: socketPath }) => answers(socketPath),
  'socket of another plugin': ({ other_socket: path }) => describes(path),
  'environment of the server': ({ server }) => readFileSync(`/proc/${server}/environ`).length > 0,
  'own environment': () => Object.keys(process.env).some((name) => !OWN.includes(name)),
  'child process': () => spawnSync('/bin/true').status === 0,
  worker: () => new Worker('', { eval: true }) !== undefined,
  'list of descriptors': () => readdirSync('/proc/self/fd').length > 0,
  descriptors: ({ marker }) => readsAny(marker),
  'new file': ({ trace }) => writeFileSync(trace, 'x') === undefined,
  'end of the server': ({ server }) => process.kill(server, 0),
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path: '/v1/admin/agents' }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    asking.on('error', reject).end()
  })
}

/** Without a certificate that the other one accepts. */
function describes(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2('https://localhost', {
      createConnection: () => connect({ path, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    })
    session.on('error', reject)
    session.on('close', () => resolve(false))
    const headers = {
      ':method': 'POST',
      ':path': '/mayfly.plugin.v1.Kind/Describe',
      'content-type': 'application/grpc',
    }
    const asking = session.request(headers)
    asking.on('error', reject).on('response', () => resolve(true))
    asking.end(Buffer.alloc(5))
  })
}

function readsAny(marker: string): boolean {
  const bytes = Buffer.alloc(4_096)
  for (let descriptor = 0; descriptor < 256; descriptor += 1) {
    try {
      const length = readSync(descriptor, bytes, 0, bytes.length, 0)
      if (bytes.toString('latin1', 0, length).includes(marker)) return true
    } catch {
      // None, or not a file.
    }
  }
  return false
}

servePlugin(
  defineKind({
    type: 'hostile',
    title: 'Hostile',
    version: '1.0.0',
    config,
    revocation: 'expiry_only',
    scopes: { forms: [{ form: 'all', gives: 'do all' }], help: 'all.' },
    open: async (targets) => ({
      async check() {
        const results: string[] = []
        for (const [name, attempt] of Object.entries(ATTEMPTS)) {
          const got = await Promise.resolve()
            .then(() => attempt(targets))
            .catch(() => false)
          results.push(`${name}: ${got === true ? 'got' : 'refused'}`)
        }
        return results
      },
      issue: async () => ({ secret: 'none' }),
      async [Symbol.asyncDispose]() {},
    }),
  }),
)
