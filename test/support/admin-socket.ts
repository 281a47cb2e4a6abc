import { type IncomingHttpHeaders, request } from 'node:http'
import { join } from 'node:path'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly signal?: AbortSignal
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

// biome-ignore lint/suspicious/noExplicitAny: each test checks the replies that it reads
export interface Reply<T = any> {
  status: number
  headers: Headers
  text: string
  /** The parsed body; undefined when it is missing or not JSON. */
  body: T
}

/** Sends one request through `admin.sock` of this data directory: as the local administrator, unless it has a bearer. */
export function askAdminSocket(dataDir: string, asked: Asked): Promise<Answered> {
  const { method, path, headers = {}, body, signal } = asked
  return new Promise((resolve, reject) => {
    const sent = request({
      socketPath: join(dataDir, 'admin.sock'),
      method,
      path,
      headers: {
        host: 'localhost',
        ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
        ...headers,
      },
      agent: false,
      ...(signal === undefined ? {} : { signal }),
    })
    sent.on('error', reject)
    sent.on('response', (reply) => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({
          status: reply.statusCode ?? 0,
          headers: headersOf(reply.headers),
          text: Buffer.concat(chunks).toString('utf8'),
        }),
      )
    })
    sent.end(body)
  })
}

function headersOf(received: IncomingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(received)) headers.set(name, [value ?? ''].flat().join(', '))
  return headers
}

/** As the tests of the API send requests: bodies and replies are JSON. */
export async function callAdminSocket(
  dataDir: string,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const reply = await askAdminSocket(dataDir, {
    method,
    path,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { ...reply, body: parsed(reply.text) }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
