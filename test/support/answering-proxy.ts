import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface AnsweringProxy extends AsyncDisposable {
  readonly url: string
}

type Answer = { status: number; body?: string } | undefined

/** Passes requests on to an HTTP server, but for those that `answer` answers in its place; it may take its time. */
export async function startAnsweringProxy(
  upstream: string,
  answer: (method: string, path: string) => Answer | Promise<Answer>,
): Promise<AnsweringProxy> {
  const proxy = createServer(async (incoming, outgoing) => {
    const { method = '', url: path = '', headers } = incoming
    const own = await answer(method, path)
    if (own !== undefined) {
      incoming.resume()
      outgoing.writeHead(own.status).end(own.body)
      return
    }
    const onward = request(`${upstream}${path}`, { method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
}
