import { lstatSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import type { Readable } from 'node:stream'

/** What a plugin says of itself on the one line that it writes when it is ready. */
export interface Handshake {
  /** Of the socket that it listens at. */
  readonly path: string
  /** DER of the certificate that it identifies itself by. */
  readonly certificate: Uint8Array
}

const LONGEST_LINE = 16_384
const CORE = '1'
const VERSION = '1'

/** How a plugin broke the protocol; the message is the end of a sentence that begins with "The plugin". */
export class HandshakeFault extends Error {}

/**
 * `CORE|APP|NETWORK|ADDRESS|PROTOCOL|SERVER_CERT`, and since go-plugin 1.6 whether it multiplexes. Believes only a socket that
 * lies in this directory: any other is one that the plugin cannot have made for us alone.
 */
export function readHandshake(line: string, directory: string): Handshake {
  const [core, version, network, path = '', protocol, certificate = ''] = line.trim().split('|')
  if (core !== CORE || version === undefined || network === undefined) {
    throw new HandshakeFault('did not begin with the line of the go-plugin protocol')
  }
  if (version !== VERSION) throw new HandshakeFault('speaks another version of the protocol than 1')
  if (network !== 'unix' || protocol !== 'grpc') {
    throw new HandshakeFault('does not speak gRPC over a unix socket')
  }
  if (!/^[A-Za-z0-9+/]{64,}={0,2}$/.test(certificate)) {
    throw new HandshakeFault('did not send its certificate (AutoMTLS)')
  }
  requireOwnSocket(path, directory)
  return { path, certificate: Buffer.from(certificate, 'base64') }
}

function requireOwnSocket(path: string, directory: string): void {
  let isOurs = false
  try {
    const isInside = isAbsolute(path) && realpathSync(dirname(path)) === realpathSync(directory)
    // Of the name itself: a link could lead to the socket of somebody else.
    isOurs = isInside && lstatSync(path).isSocket()
  } catch {
    // There is none.
  }
  if (!isOurs) throw new HandshakeFault('named a socket outside its directory')
}

/** The first line of a stream, without its end. Rejects when it is too long, or the stream ends before it. */
export function firstLine(stream: Readable): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  const stop = () => stream.off('data', onData).off('end', onEnd)
  const onEnd = () => {
    stop()
    reject(new HandshakeFault('ended before it was ready'))
  }
  const onData = (chunk: Buffer) => {
    text += chunk.toString('latin1')
    const end = text.indexOf('\n')
    if (end === -1 && text.length <= LONGEST_LINE) return
    stop()
    stream.pause()
    if (end === -1 || end > LONGEST_LINE) reject(new HandshakeFault('wrote a line that is too long'))
    else resolve(text.slice(0, end))
  }
  stream.on('data', onData).on('end', onEnd)
  return promise
}
