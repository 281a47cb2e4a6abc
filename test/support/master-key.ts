import { randomBytes } from 'node:crypto'

/** The text of a new key file, as the server writes it. */
export function newMasterKey(version = 1): string {
  return `${version}:${randomBytes(32).toString('hex')}\n`
}
