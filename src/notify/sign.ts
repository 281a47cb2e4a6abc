import { createHmac } from 'node:crypto'

/** A message as it is signed. */
export interface Signed {
  readonly id: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly payload: string
}

/**
 * The header `webhook-signature` of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 * `key`: the decoded secret.
 */
export function signWebhook(key: Uint8Array, { id, timestamp, payload }: Signed): string {
  const content = `${id}.${timestamp}.${payload}`
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`
}
