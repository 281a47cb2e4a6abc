import { connect, type Socket } from 'node:net'

export interface RawReply {
  readonly status: number
  /** Names in lower case; a repeated header is a fault. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** One connection that is kept, and opened anew when the server has closed it. Sends bytes as they are given. */
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
    /** Rejects when the server closes without an answer. */
    async send(bytes: Buffer, method: string): Promise<RawReply> {
      socket ??= open()
      const used = socket
      used.write(bytes)
      for (;;) {
        const whole = readReply(received, method)
        if (whole !== undefined) {
          received = received.subarray(whole.length)
          // Whatever follows an answer that nobody asked for would be taken for the next one's.
          if (received.length > 0) throw new Error(`bytes after the reply: ${received.toString('latin1')}`)
          if (whole.reply.headers.get('connection') === 'close') {
            used.destroy()
            if (socket === used) socket = undefined
          }
          return whole.reply
        }
        if (socket !== used)
          throw new Error(`closed without a whole answer: ${received.toString('latin1').slice(0, 200)}`)
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
    if (headers.has(name)) throw new Error(`the header ${name} comes twice`)
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
