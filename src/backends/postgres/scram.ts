import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(pbkdf2)

/**
 * What PostgreSQL stores for a password (RFC 5802 §3, RFC 7677): sent instead of the password, it keeps the
 * clear text out of the server's log. Only for ASCII passwords, which SASLprep leaves as they are. RFC 7677 §4 asks for at
 * least 4096 iterations, to slow down guessing: of a password with 256 random bits there is nothing to guess.
 */
export async function scramVerifier(
  password: string,
  iterations = 4096,
  salt: Buffer = randomBytes(16),
): Promise<string> {
  const salted = await derive(password, salt, iterations, 32, 'sha256')
  const clientKey = createHmac('sha256', salted).update('Client Key').digest()
  const storedKey = createHash('sha256').update(clientKey).digest('base64')
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}
