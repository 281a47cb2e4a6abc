import type { Header } from './asked.ts'

/** The pseudo-headers of a request (RFC 9113 §8.3), and the rest. */
export interface Http2Request {
  readonly method: string
  readonly scheme: string
  readonly target: string
  readonly authority: string | undefined
  readonly headers: readonly Header[]
}

const PSEUDO = new Set([':method', ':scheme', ':path', ':authority'])
/** They belong to a connection of HTTP/1 (§8.2.2). */
const CONNECTION = new Set(['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade'])

/**
 * Null: it is malformed. Each pseudo-header stands once, before all others; an extended CONNECT (`:protocol`) and upper case are
 * refused, as are headers of a connection.
 */
export function readHttp2(raw: readonly Header[]): Http2Request | null {
  const pseudo = new Map<string, string>()
  const headers: Header[] = []
  for (const [name, value] of raw) {
    if (name.startsWith(':')) {
      if (!PSEUDO.has(name) || pseudo.has(name) || headers.length > 0) return null
      pseudo.set(name, value)
      continue
    }
    if (name !== name.toLowerCase() || CONNECTION.has(name)) return null
    if (name === 'te' && value !== 'trailers') return null
    headers.push([name, value])
  }
  const [method, scheme, target] = [':method', ':scheme', ':path'].map((name) => pseudo.get(name))
  if (method === undefined || scheme === undefined || target === undefined) return null
  // §8.3.1: origin form, or `*`.
  if (!target.startsWith('/') && target !== '*') return null
  return { method, scheme, target, authority: pseudo.get(':authority'), headers }
}
