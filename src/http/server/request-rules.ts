import type { IncomingMessage } from 'node:http'
import { MAX_HEADERS, MAX_URL_BYTES } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'

/** Printable ASCII only (RFC 3986), without a fragment (RFC 9112 §3.2). */
const TARGET = /^[\x21\x22\x24-\x7e]+$/
/** A name or address with an optional port; no list, path or user information. */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/

/**
 * Checks the rules that Node's parser leaves open; undefined if the request obeys all. Runs for every request, so the
 * good case allocates nothing.
 */
export function findFault(request: IncomingMessage): Problem | undefined {
  const { rawHeaders } = request
  if (rawHeaders.length > 2 * MAX_HEADERS) {
    return new Problem('headers_too_large', { message: `There are more than ${MAX_HEADERS} headers.` })
  }
  // Node's parser lets `HTTP/0.9` and `HTTP/2.0` through on a request line of the 1.1 form.
  if (request.httpVersionMajor !== 1) return invalid('The HTTP version is neither 1.0 nor 1.1.')
  return findHeaderFault(request, rawHeaders) ?? findTargetFault(request)
}

function findHeaderFault(request: IncomingMessage, rawHeaders: readonly string[]): Problem | undefined {
  let host: string | undefined
  let authorization = false
  let type = false
  let transfer: string | undefined
  let hasBody = false
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    // Most names are let go by their length alone.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() !== 'host') break
        if (host !== undefined) return invalid('There is more than one Host header.')
        host = value
        break
      case 6:
        if (name.toLowerCase() === 'expect' && value.toLowerCase() !== '100-continue') {
          return invalid('The only supported expectation is "100-continue".')
        }
        break
      case 12:
        if (name.toLowerCase() !== 'content-type') break
        if (type) return invalid('There is more than one Content-Type header.')
        type = true
        break
      case 13:
        if (name.toLowerCase() !== 'authorization') break
        if (authorization) return invalid('There is more than one Authorization header.')
        authorization = true
        break
      case 14:
        if (name.toLowerCase() === 'content-length' && value !== '0') hasBody = true
        break
      case 16:
        if (name.toLowerCase() !== 'content-encoding') break
        return new Problem('unsupported_media_type', { message: 'Send the body without a Content-Encoding.' })
      case 17:
        if (name.toLowerCase() !== 'transfer-encoding') break
        if (transfer !== undefined) return invalid('There is more than one Transfer-Encoding header.')
        transfer = value
        hasBody = true
        break
    }
  }
  return findFramingFault(request, host, transfer, hasBody)
}

function findFramingFault(
  request: IncomingMessage,
  host: string | undefined,
  transfer: string | undefined,
  hasBody: boolean,
): Problem | undefined {
  if (host === undefined) {
    if (request.httpVersionMinor > 0) return invalid('The Host header is missing.')
  } else if (!HOST.test(host)) return invalid('The Host header is not valid.')
  if (transfer !== undefined) {
    // RFC 9112 §6.1: HTTP/1.0 does not define it, so the sender is faulty.
    if (request.httpVersionMinor === 0) return invalid('HTTP/1.0 does not support Transfer-Encoding.')
    if (transfer.toLowerCase() !== 'chunked')
      return invalid('The only supported Transfer-Encoding is "chunked".')
  }
  if (hasBody && (request.method === 'GET' || request.method === 'HEAD' || request.method === 'TRACE')) {
    return invalid('A request with this method must not have a body.')
  }
  return undefined
}

function findTargetFault(request: IncomingMessage): Problem | undefined {
  const url = request.url ?? ''
  if (url.length > MAX_URL_BYTES) return new Problem('uri_too_long')
  if (!TARGET.test(url)) return invalid('The address contains characters that must be percent-encoded.')
  if (url.charCodeAt(0) !== 0x2f && !isOwnAbsoluteForm(url, request.headers.host)) {
    return invalid('The address must begin with "/", or with the host of the Host header.')
  }
  if (url.includes('%')) return findEncodingFault(url)
  return undefined
}

/** Servers must accept the absolute form (RFC 9112 §3.2.2); one that differs from `Host` is an attack. */
function isOwnAbsoluteForm(url: string, host: string | undefined): boolean {
  const match = /^https?:\/\/([^/?]+)\//i.exec(url)
  return match?.[1] !== undefined && match[1].toLowerCase() === host?.toLowerCase()
}

function findEncodingFault(url: string): Problem | undefined {
  try {
    // Throws on a bad escape and on bytes that are not UTF-8; the router accepts both in the query.
    if (!decodeURIComponent(url).includes('\0')) return undefined
  } catch {}
  return invalid('The address has an invalid percent-encoding.')
}
