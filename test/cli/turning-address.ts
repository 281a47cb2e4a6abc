import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { networkInterfaces } from 'node:os'
import type { TestApp } from '../support/app.ts'

/** An address of this machine that is not on the loopback. */
export const [outside] = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .filter(({ family, internal }) => family === 'IPv4' && !internal)
  .map(({ address }) => address)

export type Answer = (incoming: IncomingMessage, body: string, outgoing: ServerResponse) => void

/** An address that leads to whatever it is turned to. */
export interface Address {
  readonly url: string
  /** To a server, or to an answer of the test's own. */
  turn(to: TestApp | Answer): void
  /** `METHOD path`, and the form of each login. */
  readonly asked: string[]
  readonly logins: URLSearchParams[]
  close(): Promise<void>
}

export async function newAddress(tls?: { certFile: string; keyFile: string }): Promise<Address> {
  let target: TestApp | Answer | undefined
  const asked: string[] = []
  const logins: URLSearchParams[] = []
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    let body = ''
    for await (const chunk of incoming) body += String(chunk)
    const { method = '', url = '' } = incoming
    asked.push(`${method} ${url}`)
    if (url === '/oauth/token') logins.push(new URLSearchParams(body))
    if (target === undefined) return outgoing.destroy()
    if (typeof target === 'function') return target(incoming, body, outgoing)
    return pass(target.url, incoming, body, outgoing)
  }
  const listener =
    tls === undefined
      ? createServer(serve)
      : createTlsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }, serve)
  const host = tls === undefined ? '127.0.0.1' : (outside ?? '')
  await new Promise<void>((resolve) => listener.listen(0, host, resolve))
  const { port } = listener.address() as { port: number }
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    asked,
    logins,
    turn: (to) => {
      target = to
    },
    close: async () => {
      listener.closeAllConnections()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

function pass(to: string, { method, url, headers }: IncomingMessage, body: string, outgoing: ServerResponse) {
  const onward = request(`${to}${url}`, { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  onward.end(body)
}
