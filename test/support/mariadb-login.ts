import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** PROTOCOL_41, SECURE_CONNECTION and PLUGIN_AUTH (MySQL, "Capabilities Flags"). */
const FLAGS = 0x0200 | 0x8000 | 0x80000
const AUTH_SWITCH = 0xfe

/** A client that has named its user, and leaves the server's question for the proof of its password without an answer. */
export async function halfLogin(port: number, user: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'data')
  const fixed = Buffer.alloc(32)
  fixed.writeUInt32LE(FLAGS, 0)
  fixed.writeUInt32LE(1 << 24, 4)
  fixed.writeUInt8(45, 8)
  const body = Buffer.concat([fixed, Buffer.from(`${user}\0\0mysql_clear_password\0`)])
  socket.write(Buffer.concat([Buffer.from([body.length & 0xff, body.length >> 8, 0, 1]), body]))
  const [asked] = (await once(socket, 'data')) as [Buffer]
  if (asked[4] !== AUTH_SWITCH) throw new Error('the server asks for no proof')
  return socket
}
