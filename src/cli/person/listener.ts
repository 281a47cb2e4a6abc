import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CliError, systemReason } from '../frame/failure.ts'

/** Waits on this machine for the one answer of a browser (RFC 8252, §7.3). */
export interface Listener {
  readonly redirectUri: string
  /** The parameters of the first request that has the state. */
  readonly answer: Promise<ReadonlyMap<string, string>>
  close(): void
}

const PATH = '/callback'
const ADDRESS = '127.0.0.1'
/** More than one browser needs; whoever holds them open, holds them for seconds. */
const MOST_CONNECTIONS = 64

/** Throws `CliError` if nothing can listen here. */
export async function listen(state: string, port = 0): Promise<Listener> {
  const { promise: answer, resolve } = Promise.withResolvers<ReadonlyMap<string, string>>()
  let isAnswered = false
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 5_000 }, (request, response) => {
    const read = readRequest(request, host, state)
    if (typeof read === 'number')
      return reply(response, read, 'This is not the answer that Mayfly waits for.')
    if (isAnswered) return reply(response, 409, 'Mayfly has its answer already.')
    isAnswered = true
    // Once the page is sent, or nobody waits for it.
    response.once('close', () => resolve(read))
    reply(response, 200, 'Mayfly has its answer. You may close this tab, and go back to the terminal.')
  })
  server.maxConnections = MOST_CONNECTIONS
  server.listen(port, ADDRESS)
  await once(server, 'listening').catch((cause: unknown) => {
    throw cannotListen(cause)
  })
  const host = `${ADDRESS}:${(server.address() as AddressInfo).port}`
  return {
    redirectUri: `http://${host}${PATH}`,
    answer,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** The parameters, or the status of the refusal. A page from elsewhere knows neither the state nor this host. */
function readRequest(
  { method, url = '', headersDistinct: { host: hosts = [] } }: IncomingMessage,
  host: string,
  state: string,
): ReadonlyMap<string, string> | number {
  if (hosts.length !== 1 || hosts[0] !== host) return 421
  const [path = '', query = '', ...more] = url.split('?')
  if (path !== PATH || more.length > 0) return 404
  if (method !== 'GET') return 405
  const given = [...new URLSearchParams(query)]
  const parameters = new Map(given)
  if (parameters.size !== given.length || !isSame(parameters.get('state') ?? '', state)) return 400
  return parameters
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function reply(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  })
  response.end(
    `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Mayfly</title>\n<p>${text}</p>\n</html>\n`,
  )
}

function cannotListen(cause: unknown): CliError {
  const { code } = cause as { code?: unknown }
  const why = systemReason(cause) ?? (code === 'EADDRINUSE' ? 'the port is taken' : String(code))
  return new CliError('cannot_listen', `The command cannot listen on ${ADDRESS} for the browser: ${why}.`, {
    hint: 'Use `mayfly login --device`, which needs no port.',
    cause,
  })
}
