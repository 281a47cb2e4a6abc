import { createHash } from 'node:crypto'

/**
 * Ed25519 (RFC 8032 §5.1) as MariaDB's method `ed25519` uses it: the seed is the password, of any length, which `node:crypto` does
 * not take. One signature for one login: its time is that of the login, which nobody can repeat with another message of their own
 * choice often enough to learn from it.
 */

const P = 2n ** 255n - 19n
const L = 2n ** 252n + 27742317777372353535851937790883648493n
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n

const mod = (value: bigint, by = P) => ((value % by) + by) % by

/** Extended coordinates: x = X/Z, y = Y/Z, x·y = T/Z. */
type Point = readonly [X: bigint, Y: bigint, Z: bigint, T: bigint]

const BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202n
const BASE_Y = 46316835694926478169428394003475163141307993866256225615783033603165251855960n
const BASE: Point = [BASE_X, BASE_Y, 1n, mod(BASE_X * BASE_Y)]

function add([x1, y1, z1, t1]: Point, [x2, y2, z2, t2]: Point): Point {
  const a = mod((y1 - x1) * (y2 - x2))
  const b = mod((y1 + x1) * (y2 + x2))
  const c = mod(2n * t1 * t2 * D)
  const d = mod(2n * z1 * z2)
  const [e, f, g, h] = [b - a, d - c, d + c, b + a]
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)]
}

/** Both sums in every step, whichever is needed. */
function multiply(scalar: bigint): Point {
  let [low, high]: [Point, Point] = [[0n, 1n, 1n, 0n], BASE]
  for (let bit = 255n; bit >= 0n; bit -= 1n) {
    const sum = add(low, high)
    const isSet = ((scalar >> bit) & 1n) === 1n
    const [doubledLow, doubledHigh] = [add(low, low), add(high, high)]
    ;[low, high] = isSet ? [sum, doubledHigh] : [doubledLow, sum]
  }
  return low
}

function power(base: bigint, exponent: bigint): bigint {
  let [result, square] = [1n, base]
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}

function encode([x, y, z]: Point): Buffer {
  const inverse = power(z, P - 2n)
  const bytes = toBytes(mod(y * inverse))
  if ((mod(x * inverse) & 1n) === 1n) bytes[31] = (bytes[31] ?? 0) | 0x80
  return bytes
}

const toBytes = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
const fromBytes = (bytes: Buffer) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
const sha512 = (...parts: readonly Buffer[]) => createHash('sha512').update(Buffer.concat(parts)).digest()

/** 64 bytes. */
export function signWithPassword(password: Buffer, message: Buffer): Buffer {
  const expanded = sha512(password)
  const clamped = Buffer.from(expanded.subarray(0, 32))
  clamped[0] = (clamped[0] ?? 0) & 248
  clamped[31] = ((clamped[31] ?? 0) & 63) | 64
  const secret = fromBytes(clamped)
  const publicKey = encode(multiply(secret))
  const nonce = mod(fromBytes(sha512(expanded.subarray(32), message)), L)
  const commitment = encode(multiply(nonce))
  const challenge = mod(fromBytes(sha512(commitment, publicKey, message)), L)
  return Buffer.concat([commitment, toBytes(mod(nonce + challenge * secret, L))])
}
