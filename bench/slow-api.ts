/**
 * An upstream far away, in its own process: a service whose API is that of Doppler, as far as the recipe `doppler` uses
 * it, and that answers each request after a time. The parent sends that time, in ms, as the first message and gets the
 * port back; to each later message it gets the tokens that are left.
 */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/** What the upstream has, and when it deleted a token last, in epoch ms. */
export interface LeftTokens {
  readonly left: number
  readonly lastAt: number
}

interface Body {
  readonly slug?: string
  readonly expire_at?: string
}

const tokens = new Set<string>()
let lastAt = 0
let delayMs = 0

const server = createServer(async (request, response) => {
  const body = request.method === 'GET' ? {} : ((await json(request)) as Body)
  setTimeout(() => {
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify(answer(request.method ?? '', body)))
  }, delayMs)
})

function answer(method: string, body: Body): object {
  if (method === 'GET') return { tokens: [], workplace: { slug: 'bench' } }
  if (method === 'DELETE') {
    if (tokens.delete(body.slug ?? '')) lastAt = Date.now()
    return { success: true }
  }
  const slug = randomBytes(12).toString('hex')
  tokens.add(slug)
  return {
    token: { slug, key: `dp.st.${randomBytes(30).toString('base64url')}`, expires_at: body.expire_at },
  }
}

process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit(0))
process.on('message', (message: { delayMs?: number }) => {
  if (message.delayMs === undefined) {
    process.send?.({ left: tokens.size, lastAt } satisfies LeftTokens)
    return
  }
  delayMs = message.delayMs
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
})
