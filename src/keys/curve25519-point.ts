/** RFC 7748 and RFC 8032: the field's prime, and the constant of the Edwards curve. */
const P = 2n ** 255n - 19n
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n

function mod(value: bigint): bigint {
  const rest = value % P
  return rest < 0n ? rest + P : rest
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}

/**
 * Whether 32 bytes are the canonical encoding of a point on Ed25519 that is not of small order. OpenSSL imports any 32
 * bytes as an Ed25519 key, and anybody can forge signatures of a key of small order unless the verifier refuses it
 * (OpenSSL 3.5 does, 3.0 does not).
 */
export function isEd25519Point(bytes: Buffer): boolean {
  if (bytes.length !== 32) return false
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & (2n ** 255n - 1n)
  if (y >= P) return false
  const yy = mod(y * y)
  // -x² + y² = 1 + d x² y², hence x² = (y² - 1) / (d y² + 1); the divisor is never zero.
  const xx = mod((yy - 1n) * power(mod(D * yy + 1n), P - 2n))
  const isSquare = power(xx, (P - 1n) / 2n) === 1n
  // Orders 1 and 2 have x = 0 (not counted as a square above), order 4 has y = 0, order 8 has x² = -y².
  return isSquare && y !== 0n && mod(xx + yy) !== 0n
}
