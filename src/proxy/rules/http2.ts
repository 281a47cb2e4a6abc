import type { Header } from './asked.ts'

/** The pseudo-headers of a request (RFC 9113 §8.3), and the rest. */
export interface Http2Request {
  readonly method: string
  readonly scheme: string
  readonly target: string
  readonly authority: string | undefined
  readonly headers: readonly Header[]
}

/** Null: it is malformed, an extended CONNECT included. */
export function readHttp2(_raw: readonly Header[]): Http2Request | null {
  return null
}
