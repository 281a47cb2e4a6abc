import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'

const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`

export interface Taken {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface WebhookReceiver {
  /** What came, in order, also where the reply was an error. */
  readonly got: Taken[]
  /** The status of its replies; undefined: it replies nothing. */
  status: number | undefined
  /** A configuration file with this one receiver. */
  readonly yaml: string
  close(): Promise<void>
}

/** A receiver on 127.0.0.1 that accepts only what the library of Standard Webhooks verifies. Its secret is in `directory`. */
export async function startWebhookReceiver(directory: string): Promise<WebhookReceiver> {
  const file = join(directory, 'webhook.key')
  writeFileSync(file, `${SECRET}\n`)
  const server = createServer((request, reply) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const headers = request.headers as Record<string, string>
      const payload = new Webhook(SECRET).verify(Buffer.concat(parts).toString(), headers) as Taken
      self.got.push({ ...payload, id: headers['webhook-id'] ?? '' })
      if (self.status !== undefined) reply.writeHead(self.status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const self: WebhookReceiver = {
    got: [],
    status: 200,
    yaml: JSON.stringify({ notify: [{ name: 'ops', webhook: { url, secret_file: file, local: true } }] }),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return self
}
