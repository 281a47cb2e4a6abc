import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { HttpUse } from '../../src/domain/use.ts'
import type { TrafficParts } from '../../src/proxy/traffic/parts.ts'
import type { Site } from '../../src/proxy/types.ts'
import { sendRaw } from './traffic-clients.ts'
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
  /** Sends bytes to the base URL, and returns all that comes until the end of the connection. */
  raw(text: string, until?: RegExp): Promise<string>
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
    raw: (text, until) => sendRaw(port, text, until),
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
