import type { Notice, Receiver } from '../domain/notice.ts'
import type { Secret } from '../domain/secret.ts'
import { createPost, type Ways } from './post.ts'
import { signWebhook } from './sign.ts'

export interface WebhookSettings {
  readonly name: string
  readonly url: string
  /** `whsec_` and base64. */
  readonly secret: Secret
  readonly local: boolean
}

/** A receiver of Standard Webhooks. */
export function openWebhook({ name, url, secret, local }: WebhookSettings, ways: Ways): Receiver {
  const post = createPost(ways, local)
  const key = Buffer.from(secret.reveal().replace(/^whsec_/, ''), 'base64')
  return {
    name,
    async send(notice, signal) {
      const { id } = notice
      const payload = payloadOf(notice, ways.issuer)
      const timestamp = Math.floor(Date.now() / 1_000)
      const headers = {
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signWebhook(key, { id, timestamp, payload }),
      }
      await post(url, { body: payload, headers }, signal)
    },
  }
}

function payloadOf({ type, at, title, lines, data }: Notice, issuer: string): string {
  const text = [title, ...lines].join('\n')
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), issuer, data: { ...data, text } })
}
