import { once } from 'node:events'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: readonly string[]
  readonly body: string
}

/** Rejects where the reply breaks. */
export async function ask(options: RequestOptions, body?: string | Buffer): Promise<Answer> {
  const outgoing = request(options.createConnection ? options : { agent: false, ...options })
  // The reply tells.
  outgoing.on('error', () => undefined)
  outgoing.end(body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { ...headOf(incoming), body: await textOf(incoming) }
}

function headOf({ statusCode = 0, headers, rawHeaders }: IncomingMessage) {
  return { status: statusCode, headers, rawHeaders }
}

export async function textOf(incoming: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of incoming) parts.push(part)
  return Buffer.concat(parts).toString('latin1')
}

/** Sends bytes as they are, and returns all that comes until the end, or until `until` is in it. */
export async function sendRaw(port: number, text: string, until?: RegExp): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text, 'latin1')
  return readUntil(socket, until)
}

export function readUntil(socket: Socket, until?: RegExp): Promise<string> {
  return new Promise((resolve) => {
    let all = ''
    const done = () => {
      socket.destroy()
      resolve(all)
    }
    socket.on('data', (chunk: Buffer) => {
      all += chunk.toString('latin1')
      if (until?.test(all)) done()
    })
    socket.on('error', done)
    socket.on('close', done)
  })
}

/** `Proxy-Authorization` of the URL that the forward proxy gave. */
export function loginOf(url: string): string {
  const { username, password } = new URL(url)
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

/** The reply to CONNECT, and the connection. */
export async function connectThrough(
  url: string,
  target: string,
  login = loginOf(url),
): Promise<{ readonly reply: string; readonly socket: Socket }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  const header = login === '' ? '' : `Proxy-Authorization: ${login}\r\n`
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${header}\r\n`)
  let reply = ''
  while (!reply.includes('\r\n\r\n')) {
    const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])])) as [
      Buffer | '',
    ]
    reply += String(chunk)
    if (chunk === '') break
  }
  return { reply, socket }
}

export interface SecureOptions {
  readonly ca: string
  readonly servername?: string
  readonly alpn?: readonly string[]
}

/** TLS inside a CONNECT. */
export async function secureThrough(url: string, target: string, options: SecureOptions): Promise<TLSSocket> {
  const { reply, socket } = await connectThrough(url, target)
  if (!reply.startsWith('HTTP/1.1 200')) throw new Error(reply)
  const secure = connectTls({
    ...{ socket, ca: options.ca, servername: options.servername ?? target.replace(/:\d+$/, '') },
    ALPNProtocols: [...(options.alpn ?? ['http/1.1'])],
  })
  await once(secure, 'secureConnect')
  secure.on('error', () => undefined)
  return secure
}

export async function askThrough(
  url: string,
  target: string,
  secure: SecureOptions,
  options: RequestOptions,
  body?: string | Buffer,
): Promise<Answer> {
  const socket = await secureThrough(url, target, secure)
  const answer = await ask(
    {
      createConnection: () => socket,
      host: target.replace(/:\d+$/, ''),
      port: 443,
      defaultPort: 443,
      ...options,
    },
    body,
  )
  socket.destroy()
  return answer
}

export async function http2Through(url: string, target: string, ca: string): Promise<ClientHttp2Session> {
  const socket = await secureThrough(url, target, { ca, alpn: ['h2', 'http/1.1'] })
  return connectHttp2(`https://${target}`, { createConnection: () => socket })
}
