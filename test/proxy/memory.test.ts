import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { createInterface, type Interface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LONG } from '../support/long.ts'
import { BEARER } from './attacks-world.ts'
import { listening } from './traffic-world.ts'

const MIB = 1024 * 1024
const PIECE = Buffer.alloc(256 * 1024, 'x')
const BYTES = (LONG ? 1024 : 200) * MIB
/** What the proxy may grow by, however much flows. */
const MOST_GROWTH = 128 * MIB

function* pieces() {
  for (let sent = 0; sent < BYTES; sent += PIECE.length) yield PIECE
}

let received = 0
const upstream = createServer((incoming, response) => {
  if (incoming.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': BYTES })
    return void pipeline(Readable.from(pieces()), response).catch(() => undefined)
  }
  incoming.on('data', (chunk: Buffer) => {
    received += chunk.length
  })
  incoming.on('end', () => response.end('done'))
})
let child: ChildProcess
let lines: Interface
let port: number

beforeAll(async () => {
  const program = fileURLToPath(new URL('support/traffic-process.ts', import.meta.url))
  child = spawn(process.execPath, [program, String(await listening(upstream))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  lines = createInterface({ input: child.stdout as Readable })
  port = Number((await once(lines, 'line'))[0])
}, 60_000)
afterAll(() => {
  child.stdin?.end()
  upstream.closeAllConnections()
  upstream.close()
})

async function memory(): Promise<number> {
  child.stdin?.write('?')
  return Number((await once(lines, 'line'))[0])
}

/** The most that it has while `work` runs, over what it had before. */
async function growthDuring(work: () => Promise<void>): Promise<number> {
  const before = await memory()
  let most = before
  let isOver = false
  const watch = (async () => {
    while (!isOver) {
      most = Math.max(most, await memory())
      await delay(50)
    }
  })()
  await work()
  isOver = true
  await watch
  return most - before
}

async function get(): Promise<IncomingMessage> {
  const outgoing = request({ port, headers: BEARER, agent: false }).end()
  return ((await once(outgoing, 'response')) as [IncomingMessage])[0]
}

test('a download that is searched for secrets keeps the memory flat', { timeout: 120_000 }, async () => {
  let got = 0
  const growth = await growthDuring(async () => {
    for await (const chunk of await get()) got += (chunk as Buffer).length
  })
  console.info(`download of ${BYTES / MIB} MiB: +${(growth / MIB).toFixed(0)} MiB`)
  expect(got).toBe(BYTES)
  expect(growth).toBeLessThan(MOST_GROWTH)
})

test('an upload keeps the memory flat', { timeout: 120_000 }, async () => {
  const growth = await growthDuring(async () => {
    const outgoing = request({ port, method: 'POST', headers: BEARER, agent: false })
    const replied = once(outgoing, 'response')
    await pipeline(Readable.from(pieces()), outgoing)
    ;((await replied) as [IncomingMessage])[0].resume()
  })
  console.info(`upload of ${BYTES / MIB} MiB: +${(growth / MIB).toFixed(0)} MiB`)
  expect(received).toBe(BYTES)
  expect(growth).toBeLessThan(MOST_GROWTH)
})

test('a reader that stops holds back the upstream, not the memory', { timeout: 120_000 }, async () => {
  const growth = await growthDuring(async () => {
    const incoming = await get()
    incoming.on('error', () => undefined).pause()
    await delay(2_000)
    incoming.destroy()
  })
  expect(growth).toBeLessThan(MOST_GROWTH)
})
