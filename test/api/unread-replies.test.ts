import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { LONG } from '../support/long.ts'
import { longestTurnMs } from '../support/longest-turn.ts'

/** Replies that nobody reads: in full 2,720, as many as requests of 176 KB get. */
const CONNECTIONS = LONG ? 160 : 40
/** CPU time of all replies, and of the longest turn; a sample has the costs of the measuring itself, too. */
const [COST_MS, HOLD_MS] = LONG ? [2_000, 1_000] : [1_500, 400]
const PIPELINED = 17

let app: TestApp
/** Requests that the server has begun to answer. */
let arrived = 0
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'tok' })
  app.app.http.server.server.on('request', () => {
    arrived += 1
  })
})
afterAll(() => app.close())

it.each([
  '/',
  '/health',
  '/readyz',
  '/openapi.json',
  '/docs',
  '/docs/scalar.js',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server',
  '/.well-known/jwks.json',
  '/backends/tok/.well-known/openid-configuration',
  '/backends/tok/.well-known/jwks.json',
])(
  'answers many requests for %s, whose replies nobody reads, at little cost and holds nobody up',
  async (path) => {
    // Whatever is made once.
    await (await fetch(app.url + path)).arrayBuffer()
    const { hostname, port } = new URL(app.url)
    const request = `GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`
    const sockets = await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        const socket = connect({ port: Number(port), host: hostname })
        await once(socket, 'connect')
        return socket.pause()
      }),
    )
    let most = 0
    arrived = 0
    const cost = await cpuMsOf(async () => {
      most = await longestTurnMs(async () => {
        for (const socket of sockets) socket.write(request.repeat(PIPELINED))
        // Until the server takes no more: it stops reading a connection whose replies nobody reads.
        for (let before = -1; before < arrived || arrived < CONNECTIONS; ) {
          before = arrived
          for (let n = 0; n < 10; n += 1) await (await fetch(`${app.url}/health`)).text()
          arrived -= 10
        }
      })
    })
    for (const socket of sockets) socket.destroy()
    expect(cost).toBeLessThan(COST_MS)
    expect(most).toBeLessThan(HOLD_MS)
  },
)
