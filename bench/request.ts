import { request as httpRequest } from 'node:http'
import type { RecordedReply } from './baseline.ts'

export interface Ask {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly bearer?: string
  readonly json?: object
  readonly form?: Readonly<Record<string, string>>
}

/** The complete request as ASCII text. */
export function encode(ask: Ask, port: number): string {
  const body = bodyOf(ask)
  const lines = [`${ask.method} ${ask.path} HTTP/1.1`, `Host: 127.0.0.1:${port}`]
  for (const [name, value] of Object.entries(headersOf(ask))) lines.push(`${name}: ${value}`)
  if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`
}

/** Sends one request; the recorded reply lacks the headers that Node's server adds. */
export function record(ask: Ask, port: number): Promise<RecordedReply> {
  const body = bodyOf(ask)
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method: ask.method, path: ask.path, agent: false }
    const asked = httpRequest({ ...options, headers: headersOf(ask) }, (reply) => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({
          status: reply.statusCode ?? 0,
          headers: ownHeaders(reply.rawHeaders),
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      )
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** Sends one request; throws unless the reply is a 2xx. */
export async function fetchJson<T>(ask: Ask, port: number): Promise<T> {
  const { status, body } = await record(ask, port)
  if (status < 200 || status > 299) throw new Error(`${ask.method} ${ask.path} answered ${status}: ${body}`)
  return JSON.parse(body) as T
}

const NODES_OWN = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding'])

function ownHeaders(raw: readonly string[]): string[] {
  return raw.flatMap((name, index) =>
    index % 2 === 0 && !NODES_OWN.has(name.toLowerCase()) ? [name, raw[index + 1] ?? ''] : [],
  )
}

function bodyOf(ask: Ask): string | undefined {
  if (ask.json !== undefined) return JSON.stringify(ask.json)
  return ask.form === undefined ? undefined : new URLSearchParams(ask.form).toString()
}

function headersOf(ask: Ask): Record<string, string> {
  return {
    'User-Agent': 'mayfly-bench',
    ...(ask.bearer === undefined ? {} : { Authorization: `Bearer ${ask.bearer}` }),
    ...(ask.json === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(ask.form === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
  }
}
