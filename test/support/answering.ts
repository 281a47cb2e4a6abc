import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that answers everything so. */
export async function answering(reply: unknown): Promise<AsyncDisposable & { readonly url: string }> {
  const type = { 'content-type': 'application/json' }
  const one = createServer((_, response) => response.writeHead(200, type).end(JSON.stringify(reply)))
  await once(one.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(one.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      one.closeAllConnections()
      one.close()
    },
  }
}
