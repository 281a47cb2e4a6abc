import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHttpServer, type HttpServer } from '../../src/http/server/server.ts'
import { cpuMs, createCostCheck } from './cost.ts'

let server: HttpServer
let address: string
let calls = 0
const burn = (ms: number) => {
  for (const until = cpuMs() + ms; cpuMs() < until; );
}
beforeAll(async () => {
  let count = 0
  server = createHttpServer({
    log: { error: () => {}, warn: () => {}, debug: () => {} },
    newRequestId: () => `req_${++count}`,
  })
  server.get('/slow', () => {
    burn(80)
    return {}
  })
  server.get('/quick', () => ({}))
  server.get('/waits', () => new Promise((resolve) => setTimeout(resolve, 200, {})))
  server.get('/cold', () => {
    calls += 1
    if (calls === 1) burn(120)
    return {}
  })
  address = await server.listen({ port: 0, host: '127.0.0.1' })
})
afterAll(() => server.close())

it('finds the one request that is slow among those that run with it, wait, or were slow once', async () => {
  const check = createCostCheck()
  const ask = (path: string) => check.watch(path, async () => (await fetch(address + path)).text())
  await Promise.all(['/quick', '/slow', '/waits', '/cold', '/quick'].map(ask))
  expect(await check.slow()).toEqual([expect.stringMatching(/^\/slow: takes \d+ ms of CPU$/)])
  await Promise.all(['/quick', '/waits', '/cold'].map(ask))
  expect(await check.slow()).toEqual([])
})
