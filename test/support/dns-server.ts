import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { isIP } from 'node:net'

/** What a name server says of a name: addresses, nothing at all, or that it cannot say. */
export type DnsAnswer = readonly string[] | 'silent' | 'failing'

export interface DnsServer extends AsyncDisposable {
  /** Address and port. */
  readonly address: string
  /** Each question that arrived, as `name type`. */
  readonly asked: readonly string[]
  /** Resolves at the next question. */
  question(): Promise<unknown>
  /** By name. A name that is not in it does not exist. */
  readonly names: Map<string, DnsAnswer>
}

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' }
const FAILING = 2
const ABSENT = 3

/** A real name server on loopback (RFC 1035). `ttl` in seconds. */
export async function startDnsServer(
  names: Readonly<Record<string, DnsAnswer>>,
  { ttl = 60, host = '127.0.0.1', port = 0 } = {},
): Promise<DnsServer> {
  const known = new Map(Object.entries(names))
  const asked: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (question: Buffer, { port: from, address }: RemoteInfo) => {
    const { name, type, end } = readQuestion(question)
    asked.push(`${name} ${TYPES[type] ?? type}`)
    const answer = known.get(name.toLowerCase())
    if (answer === 'silent') return
    const records = Array.isArray(answer) ? answer.filter((one) => isIP(one) === (type === 1 ? 4 : 6)) : []
    const code = answer === 'failing' ? FAILING : answer === undefined ? ABSENT : 0
    socket.send(replyTo(question.subarray(0, end), code, records.map(bytesOf), { type, ttl }), from, address)
  })
  socket.bind(port, host)
  await once(socket, 'listening')
  return {
    address: `${host}:${socket.address().port}`,
    asked,
    question: () => once(socket, 'message'),
    names: known,
    async [Symbol.asyncDispose]() {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: message.readUInt16BE(at + 1), end: at + 5 }
}

function replyTo(
  question: Buffer,
  code: number,
  records: readonly Buffer[],
  { type, ttl }: { type: number; ttl: number },
): Buffer {
  const head = Buffer.from(question)
  // An answer, recursion available.
  head.writeUInt16BE(0x8180 | code, 2)
  for (const [at, count] of [1, records.length, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * at)
  const answers = records.map((bytes) => {
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt32BE(ttl, 6)
    record.writeUInt16BE(bytes.length, 10)
    return Buffer.concat([record, bytes])
  })
  return Buffer.concat([head, ...answers])
}

function bytesOf(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [before = '', after] = address.split('::')
  const words = (text: string | undefined) => (text ?? '').split(':').filter((word) => word !== '')
  const [first, last] = [words(before), words(after)]
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0')
  return Buffer.from(
    [...first, ...zeros, ...last].flatMap((word) => [parseInt(word, 16) >> 8, parseInt(word, 16) & 255]),
  )
}
