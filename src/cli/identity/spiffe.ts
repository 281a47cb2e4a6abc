import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { connectorOf } from '../session/local-server.ts'
import { given, type IdentitySource, noToken } from './source.ts'
import { firstToken, requestFor } from './workload-message.ts'

const VARIABLE = 'SPIFFE_ENDPOINT_SOCKET'
const TITLE = 'the SPIFFE Workload API'
const TIMEOUT_MS = 5_000
const MAX_BYTES = 64 * 1024
/** Of a message of gRPC: a flag, and four bytes of length (grpc/doc/PROTOCOL-HTTP2.md, "Length-Prefixed-Message"). */
const FRAME_HEAD_BYTES = 5

/** A JWT-SVID from the agent of SPIRE, or another implementation of the Workload API, which knows the caller by itself. */
export const spiffe: IdentitySource = {
  name: 'spiffe',
  title: TITLE,
  needs: `${VARIABLE}, as \`unix:///path/of/agent.sock\``,
  isHere: (context) => given(context, VARIABLE) !== undefined,
  workload: (context) => given(context, VARIABLE) ?? '',
  token: async (context, audience, options) => {
    const stop = AbortSignal.any([
      AbortSignal.timeout(TIMEOUT_MS),
      ...(options.signal === undefined ? [] : [options.signal]),
    ])
    try {
      return await fetchJwtSvid(context, audience, stop)
    } catch (error) {
      options.signal?.throwIfAborted()
      if (error instanceof CliError) throw error
      const why = stop.aborted ? 'it did not answer in time.' : 'what answers does not speak gRPC.'
      throw noToken(TITLE, why, undefined, error)
    }
  },
}

/** Throws `CliError`, and any other error if the answer is not gRPC. */
async function fetchJwtSvid(context: Context, audience: string, signal: AbortSignal): Promise<string> {
  const socket = await connect(context)
  try {
    const session = await openSession(socket)
    const { status, body } = await callOnce(session, requestFor(audience), signal)
    if (status === undefined) throw new Error('no status')
    if (status !== '0') throw noToken(TITLE, MEANINGS[status] ?? 'it refused.')
    const isWhole = body[0] === 0 && body.length - FRAME_HEAD_BYTES === body.readUInt32BE(1)
    const token = isWhole ? firstToken(body.subarray(FRAME_HEAD_BYTES)) : undefined
    if (token === undefined) throw noToken(TITLE, 'its answer holds none.')
    return token
  } finally {
    socket.destroy()
  }
}

/** SPIFFE Workload Endpoint §6, and appendix A. */
const MEANINGS: Readonly<Record<string, string>> = {
  '7': 'it has no identity for this process, so an entry for it must be registered.',
  '12': 'it does not issue JWT-SVIDs.',
  '14': 'it is not ready yet.',
}

/**
 * SPIFFE Workload Endpoint §4. SPIRE opens its socket to everybody, so its mode says nothing; its owner must be root, this
 * user, or the owner of its directory, as for the socket of our server. Throws `CliError`.
 */
async function connect(context: Context): Promise<Socket> {
  const address = given(context, VARIABLE)
  if (address === undefined) throw noToken(TITLE, `it needs ${spiffe.needs}.`)
  const path = /^unix:(?:\/\/)?(\/[^?#]+)$/.exec(address)?.[1]
  if (path === undefined)
    throw noToken(TITLE, `${VARIABLE} is not the address of a unix socket (unix:///path).`)
  try {
    return await connectorOf(context)({ path })
  } catch (error) {
    if (error instanceof CliError) throw error
    throw noToken(TITLE, `nothing answers at ${path}.`, undefined, error)
  }
}

function openSession(socket: Socket): Promise<ClientHttp2Session> {
  const { connect: connectHttp2 } = process.getBuiltinModule('node:http2')
  const session = connectHttp2('http://localhost', { createConnection: () => socket })
  return new Promise((resolve, reject) => {
    session.once('error', reject)
    session.once('connect', () => resolve(session))
  })
}

interface Answer {
  readonly status: string | undefined
  readonly body: Buffer
}

/** One call without streams. Rejects with the reason of the signal, or an error of HTTP/2. */
function callOnce(session: ClientHttp2Session, message: Buffer, signal: AbortSignal): Promise<Answer> {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  head.writeUInt32BE(message.length, 1)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/SpiffeWorkloadAPI/FetchJWTSVID',
    'content-type': 'application/grpc',
    te: 'trailers',
    // §3: required, so that nobody can trick a program into a request by an address alone.
    'workload.spiffe.io': 'true',
  })
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      stream.destroy()
      reject(error)
    }
    session.on('error', fail)
    signal.addEventListener('abort', () => fail(signal.reason), { once: true })
    if (signal.aborted) fail(signal.reason)
    collect(stream, fail, resolve)
    stream.end(Buffer.concat([head, message]))
  })
}

function collect(
  stream: ClientHttp2Stream,
  fail: (error: unknown) => void,
  done: (answer: Answer) => void,
): void {
  const chunks: Buffer[] = []
  let size = 0
  let status: string | undefined
  const hear = (headers: IncomingHttpHeaders) => {
    const said = headers['grpc-status']
    if (typeof said === 'string') status = said
  }
  // An answer without a message has its status among the headers.
  stream.on('response', hear)
  stream.on('trailers', hear)
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MAX_BYTES) fail(noToken(TITLE, 'its answer has more than 64 KiB.'))
    else chunks.push(chunk)
  })
  stream.on('error', fail)
  // By then the trailers have come, too.
  stream.on('close', () => {
    if (stream.readableEnded) done({ status, body: Buffer.concat(chunks) })
    else fail(new Error('closed'))
  })
}
