/** Moves many bytes over one connection, by a bare socket. */
import { connect, type Socket } from 'node:net'
import { PLACEHOLDER } from './start.ts'

const BLOCK = Buffer.alloc(262_144, 0x5a)
const SILENT_MS = 30_000

/** MB per second. Throws unless all of them arrive. */
export function download(port: number, path: string, bytes: number): Promise<number> {
  return move(port, { bytes, awaited: bytes }, (socket) => {
    socket.write(head(port, 'GET', `${path}/${bytes}`))
  })
}

/** MB per second, up to the reply. */
export function upload(port: number, path: string, bytes: number): Promise<number> {
  return move(port, { bytes, awaited: 1 }, (socket) => {
    socket.write(head(port, 'POST', path, `Content-Length: ${bytes}\r\n`))
    let left = bytes
    const send = () => {
      while (left > 0) {
        const block = left < BLOCK.length ? BLOCK.subarray(0, left) : BLOCK
        left -= block.length
        if (!socket.write(block)) return
      }
    }
    socket.on('drain', send)
    send()
  })
}

interface Amount {
  readonly bytes: number
  /** Bytes of the reply's body after which all is done. */
  readonly awaited: number
}

/** Resolves with MB per second. */
function move(port: number, { bytes, awaited }: Amount, begin: (socket: Socket) => void): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = 0
    let first: Buffer | undefined = Buffer.alloc(0)
    let began = 0
    const take = (size: number, buffer: Uint8Array) => {
      let body = size
      if (first !== undefined) {
        first = Buffer.concat([first, buffer.subarray(0, size)])
        const end = first.indexOf('\r\n\r\n')
        if (end === -1) return true
        if (first.toString('latin1', 9, 12) !== '200') {
          socket.destroy(new Error(`answered ${first.toString('latin1', 0, 500)}`))
          return false
        }
        body = first.length - end - 4
        first = undefined
      }
      received += body
      if (received < awaited) return true
      resolve(bytes / 1_000_000 / ((performance.now() - began) / 1_000))
      socket.destroy()
      return false
    }
    const socket = connect({
      ...{ host: '127.0.0.1', port, noDelay: true },
      onread: { buffer: Buffer.allocUnsafe(BLOCK.length), callback: take },
    })
    socket.setTimeout(SILENT_MS, () => socket.destroy(new Error('nothing moves')))
    socket.once('connect', () => {
      began = performance.now()
      begin(socket)
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the connection ended early')))
  })
}

function head(port: number, method: string, path: string, more = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n${more}\r\n`
}
