// Enrolls an agent with nothing but Node 24: makes a key, asks, waits for approval, opens the sealed answer.
// Usage: node enroll.mjs <issuer> <agent name> [scope …]     (the answer goes to standard output, as JSON)
import {
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomUUID,
  sign,
} from 'node:crypto'
import { setTimeout } from 'node:timers/promises'

const [issuer, name, ...scopes] = process.argv.slice(2)
if (issuer === undefined || name === undefined) {
  console.error('usage: node enroll.mjs <issuer> <agent name> [scope …]')
  process.exit(2)
}
const b64 = (value) => Buffer.from(value).toString('base64url')
const jwk = (key) => key.export({ format: 'jwk' })

/** The enrolled key is also a login (private_key_jwt): keep it if you want to use that. */
const own = generateKeyPairSync('ed25519')
const asked = { name, public_key: jwk(own.publicKey), ...(scopes.length > 0 ? { scopes } : {}) }
const reply = await fetch(`${issuer}/v1/enroll`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(asked),
})
const enrollment = await reply.json()
if (!reply.ok) throw new Error(JSON.stringify(enrollment))
console.error(`enrollment ${enrollment.id}: ${enrollment.status}`)

for (;;) {
  const box = generateKeyPairSync('x25519')
  const seen = await poll(prove(jwk(box.publicKey)))
  if (seen.sealed !== undefined) {
    console.log(open(seen.sealed, box.privateKey))
    break
  }
  if (seen.status !== 'pending') throw new Error(`the enrollment is ${seen.status}`)
  await setTimeout(enrollment.poll_interval_ms)
}

async function poll(proof) {
  const url = `${issuer}/v1/enroll/${enrollment.id}/status`
  const reply = await fetch(url, { headers: { 'enrollment-proof': proof } })
  const body = await reply.json()
  if (!reply.ok) throw new Error(JSON.stringify(body))
  return body
}

/** A compact JWS by the enrolled key: good for a minute, once. The answer is sealed to `enc`. */
function prove(enc) {
  const claims = {
    aud: issuer,
    enr: enrollment.id,
    iat: Math.floor(Date.now() / 1000),
    jti: randomUUID(),
    enc,
  }
  const input = `${b64('{"alg":"EdDSA"}')}.${b64(JSON.stringify(claims))}`
  return `${input}.${b64(sign(null, Buffer.from(input), own.privateKey))}`
}

/** A compact JWE, ECDH-ES with A256GCM (RFC 7518 §4.6). */
function open(sealed, privateKey) {
  const [head, , iv, text, tag] = sealed.split('.')
  const { epk } = JSON.parse(Buffer.from(head, 'base64url').toString())
  const shared = diffieHellman({ privateKey, publicKey: createPublicKey({ key: epk, format: 'jwk' }) })
  const u32 = (n) => Buffer.from([n >>> 24, n >>> 16, n >>> 8, n])
  const part = (data) => Buffer.concat([u32(data.length), data])
  const info = [part(Buffer.from('A256GCM')), part(Buffer.alloc(0)), part(Buffer.alloc(0)), u32(256)]
  const key = createHash('sha256')
    .update(Buffer.concat([u32(1), shared, ...info]))
    .digest()
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(head)).setAuthTag(Buffer.from(tag, 'base64url'))
  return decipher.update(text, 'base64url', 'utf8') + decipher.final('utf8')
}
