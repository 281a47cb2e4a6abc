import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../support/run-program.ts'
import { listening, testCertificates } from './traffic-world.ts'

const { ca, server: certificate, remove } = testCertificates()
const server = createServer(certificate, (socket) => {
  socket.on('error', () => undefined)
  socket.resume()
})
server.on('tlsClientError', () => undefined)
let port = 0
beforeAll(async () => {
  port = await listening(server)
})
afterAll(() => {
  server.close()
  remove()
})

const source = (path: string) => fileURLToPath(new URL(`../../src/proxy/${path}`, import.meta.url))
const TO_DATABASE = `
  const { secureUpstream } = await import(${JSON.stringify(source('databases/upstream.ts'))})
  const raw = connect(Number(process.env.PORT), '127.0.0.1')
  await once(raw, 'connect')
  const use = { protocol: 'redis', host: 'localhost', tls: 'verify-full' }
  await secureUpstream({ use, trust: createTrust() }, raw, AbortSignal.timeout(10_000))`
const TO_HTTP = `
  const { connectUpstream } = await import(${JSON.stringify(source('traffic/upstream/connect.ts'))})
  const to = { scheme: 'https', host: 'localhost', port: Number(process.env.PORT), is: 'local' }
  await connectUpstream(to, '127.0.0.1', { alpn: ['http/1.1'], timeoutMs: 10_000, onSocket() {}, trust: createTrust() })`

/** Only a process of its own reads the authorities of a system that has others. */
async function outcome(program: string, env: Record<string, string>): Promise<string> {
  const text = `
    import { once } from 'node:events'
    import { connect } from 'node:net'
    import { createTrust } from ${JSON.stringify(source('trust.ts'))}
    try { ${program}; console.log('trusted') } catch (error) { console.log(error.code ?? error.reason) }
    process.exit()`
  const all = { PATH: String(process.env['PATH']), PORT: String(port), ...env }
  const { stdout, stderr } = await run([process.execPath, '--input-type=module', '-e', text], all)
  return `${stdout}${stderr}`.trim()
}

test.each([
  ['of HTTP', TO_HTTP, 'unreachable'],
  ['that is a database', TO_DATABASE, 'upstream_tls'],
])('an upstream %s is trusted by the authorities of the system', async (_what, program, refused) => {
  expect(await outcome(program, { SSL_CERT_FILE: ca })).toBe('trusted')
  expect(await outcome(program, {})).toBe(refused)
})
