import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BackendError, type Fault } from '../../domain/backend-error.ts'
import { newRequest, type OpenKind } from './open-kind.ts'
import type { Runner } from './runner.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
/** The reply is not one of this upstream, which does not say whether something was made there. */
const ANY: readonly Fault[] = ['unavailable']

/** What an HTTP server may answer, and which faults a kind may make of it. */
const BAD_DAYS: readonly [string, (response: ServerResponse) => void, readonly Fault[]][] = [
  ['500', (response) => response.writeHead(500).end('{"error":"s3cret of the upstream"}'), ['unavailable']],
  ['503', (response) => response.writeHead(503, { 'retry-after': '1' }).end(), ['unavailable']],
  ['401', (response) => response.writeHead(401).end('{}'), ['denied', 'misconfigured']],
  ['403', (response) => response.writeHead(403).end('{}'), ['denied', 'misconfigured']],
  [
    'a redirect inwards',
    (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    ['misconfigured'],
  ],
  ['a reply of another type', (response) => response.writeHead(200).end('<html>hello</html>'), ANY],
  ['a list for an object', (response) => response.writeHead(200, JSON_TYPE).end('[[null]]'), ANY],
  ['an empty object', (response) => response.writeHead(200, JSON_TYPE).end('{}'), ANY],
  ['half a reply', (response) => response.writeHead(200, { 'content-length': '99' }).write('{'), ['timeout']],
  [
    '100 MB',
    (response) => {
      response.writeHead(200, JSON_TYPE)
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more)
      }
      response.on('error', () => undefined)
      more()
    },
    ['unavailable'],
  ],
]

export function describeBadDays({ it }: Runner, get: () => OpenKind): void {
  for (const [what, answer, faults] of BAD_DAYS)
    it(`answers to ${what} of an HTTP upstream with the fault that fits`, async () => {
      const { hostile, scopes, kind, logged } = get()
      if (hostile === undefined) return
      const server = createServer((request, response) => {
        request.resume()
        answer(response)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const backend = await hostile(`http://127.0.0.1:${port}`)
      // Only what never comes is waited for: a busy machine may take long for the rest.
      const soon = () => AbortSignal.timeout(faults.includes('timeout') ? 400 : 30_000)
      const request = newRequest(scopes)
      const tries: Promise<unknown>[] = [backend.issue(request, soon())]
      const handle = backend.recover?.(request.credentialId)
      if (handle !== undefined && backend.revoke !== undefined) tries.push(backend.revoke(handle, soon()))
      for (const [index, outcome] of (await Promise.allSettled(tries)).entries()) {
        // An answer that names nothing is, to a revocation, that nothing is there.
        if (index === 1 && outcome.status === 'fulfilled' && faults === ANY) continue
        assert(outcome.status === 'rejected', `${index === 0 ? 'issue' : 'revoke'} succeeded`)
        const { reason: error } = outcome
        assert(error instanceof BackendError, String(error))
        assert(faults.includes(error.fault), `${kind.type}: ${error.fault}: ${error.message}`)
        assert(!(error.message + logged()).includes('s3cret'), 'message or log repeat the reply')
      }
      await backend[Symbol.asyncDispose]()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
}
