import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { HttpUse } from '../../src/domain/use.ts'
import type { TrafficParts } from '../../src/proxy/traffic/parts.ts'
import type { Site } from '../../src/proxy/types.ts'
import {
  type HeldFake,
  heldFake,
  httpUse,
  listening,
  PLACEHOLDER,
  type TrafficWorld,
  trafficWorld,
} from './traffic-world.ts'

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

export interface Attacked extends AsyncDisposable {
  readonly upstream: Server
  readonly world: TrafficWorld
  readonly held: HeldFake
  readonly site: Site
  readonly port: number
  /** What reached the upstream. */
  readonly arrived: IncomingMessage[]
  answer(handle: Handle): void
  /** Sends bytes to the base URL, and returns all that comes until the end, or until it is quiet after something came. */
  raw(text: string, quietMs?: number): Promise<string>
}

export const BEARER = { authorization: `Bearer ${PLACEHOLDER}` }

/** An upstream, and a base URL before it. */
export async function attacked(
  use: Partial<HttpUse> = {},
  parts: Partial<TrafficParts> & { readonly names?: Readonly<Record<string, readonly string[]>> } = {},
): Promise<Attacked> {
  const arrived: IncomingMessage[] = []
  let answer: Handle = (_request, response) => response.end('fine')
  const upstream = createServer((request, response) => {
    arrived.push(request)
    answer(request, response)
  })
  const of = httpUse(`http://127.0.0.1:${await listening(upstream)}`, use)
  const held = heldFake('api', [of])
  const world = trafficWorld([held], { idleMs: 5_000, ...parts })
  const site = await world.traffic.openSite(held, of)
  const port = Number(new URL(site.url).port)
  return {
    ...{ upstream, world, held, site, port, arrived },
    answer: (handle) => {
      answer = handle
    },
    raw: (text, quietMs = QUIET_MS) => sendBytes(port, text, quietMs),
    async [Symbol.asyncDispose]() {
      await world.close()
      upstream.closeAllConnections()
      upstream.close()
    },
  }
}

/** A request as bytes, with a placeholder and the right Host unless `host` is there. */
export function head(
  port: number,
  lines: readonly string[],
  { line = 'POST /v1/x HTTP/1.1', host = `Host: 127.0.0.1:${port}` } = {},
): string {
  const auth = `Authorization: Bearer ${PLACEHOLDER}`
  return `${[line, ...(host === '' ? [] : [host]), auth, ...lines].join('\r\n')}\r\n\r\n`
}

const QUIET_MS = 150

function sendBytes(port: number, text: string, quietMs: number): Promise<string> {
  return new Promise((resolve) => {
    let all = ''
    let quiet: NodeJS.Timeout | undefined
    const socket = connect(port, '127.0.0.1')
    const done = () => {
      clearTimeout(quiet)
      socket.destroy()
      resolve(all)
    }
    socket.on('data', (chunk: Buffer) => {
      all += chunk.toString('latin1')
      clearTimeout(quiet)
      quiet = setTimeout(done, quietMs)
    })
    socket.on('error', done)
    socket.on('close', done)
    socket.write(text, 'latin1')
  })
}
