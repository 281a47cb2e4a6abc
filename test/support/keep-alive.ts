import { connect, type Socket } from 'node:net'

export interface RawReply {
  readonly status: number
  /** Names in lower case; a repeated header is an error. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** A keep-alive connection that sends raw bytes and reconnects after the server closes it. */
export function createConnection(port: number) {
  let socket: Socket | undefined
  let received = Buffer.alloc(0)
  let onChange: () => void = () => undefined

  function open(): Socket {
    received = Buffer.alloc(0)
    const made = connect({ port, host: '127.0.0.1', noDelay: true })
    made.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      onChange()
    })
    made.on('error', () => made.destroy())
    made.on('close', () => {
      if (socket === made) socket = undefined
      onChange()
    })
    return made
  }

  return {
    /** Rejects if the server closes the connection before it has sent a complete reply. */
    async send(bytes: Buffer, method: string): Promise<RawReply> {
      socket ??= open()
      const used = socket
      used.write(bytes)
      for (;;) {
        const whole = readReply(received, method)
        if (whole !== undefined) {
          received = received.subarray(whole.length)
          // Bytes after a reply would be taken for the start of the next one.
          if (received.length > 0) throw new Error(`bytes after the reply: ${received.toString('latin1')}`)
          if (whole.reply.headers.get('connection') === 'close') {
            used.destroy()
            if (socket === used) socket = undefined
          }
          return whole.reply
        }
        if (socket !== used)
          throw new Error(`closed before a complete reply: ${received.toString('latin1').slice(0, 200)}`)
        await new Promise<void>((resolve) => {
          onChange = resolve
        })
      }
    },
    close: () => socket?.destroy(),
  }
}

function readReply(bytes: Buffer, method: string): { reply: RawReply; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    if (headers.has(name)) throw new Error(`the header ${name} is repeated`)
    headers.set(name, line.slice(colon + 1).trim())
  }
  const hasBody = method !== 'HEAD' && status !== 204
  const length = hasBody ? Number(headers.get('content-length')) : 0
  if (Number.isNaN(length)) throw new Error(`a reply without Content-Length: ${first}`)
  const start = end + 4
  if (bytes.length < start + length) return undefined
  const body = bytes.toString('utf8', start, start + length)
  return { reply: { status, headers, body }, length: start + length }
}
