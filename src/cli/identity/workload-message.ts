/*
 * The two messages of the SPIFFE Workload API that a JWT-SVID needs, in the encoding of protocol buffers
 * (github.com/spiffe/spiffe, standards/workloadapi.proto; protobuf.dev/programming-guides/encoding):
 *
 *   message JWTSVIDRequest { repeated string audience = 1; string spiffe_id = 2; }
 *   message JWTSVIDResponse { repeated JWTSVID svids = 1; }
 *   message JWTSVID { string spiffe_id = 1; string svid = 2; string hint = 3; }
 */

/** Wire type 2: a length, then as many bytes. */
const BYTES = 2

export function requestFor(audience: string): Buffer {
  const text = Buffer.from(audience, 'utf8')
  return Buffer.concat([Buffer.from([(1 << 3) | BYTES]), varint(text.length), text])
}

/** The first token, which is that of the default identity; undefined if there is none, or the message is damaged. */
export function firstToken(response: Buffer): string | undefined {
  const svid = fieldOf(response, 1)
  return svid === undefined ? undefined : fieldOf(svid, 2)?.toString('utf8')
}

/** The first field of this number, with bytes. */
function fieldOf(message: Buffer, wanted: number): Buffer | undefined {
  let at = 0
  while (at < message.length) {
    const key = readVarint(message, at)
    const length = key === undefined ? undefined : readVarint(message, key.end)
    // Neither message has a field of another wire type.
    if (key === undefined || length === undefined || (key.value & 7) !== BYTES) return undefined
    const end = length.end + length.value
    if (end > message.length) return undefined
    if (key.value >>> 3 === wanted) return message.subarray(length.end, end)
    at = end
  }
  return undefined
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}

/** At most four bytes, which is more than these messages may be long. */
function readVarint(
  from: Buffer,
  start: number,
): { readonly value: number; readonly end: number } | undefined {
  let value = 0
  for (let read = 0; read < 4; read += 1) {
    const byte = from[start + read]
    if (byte === undefined) return undefined
    value |= (byte & 0x7f) << (7 * read)
    if (byte < 0x80) return { value, end: start + read + 1 }
  }
  return undefined
}
