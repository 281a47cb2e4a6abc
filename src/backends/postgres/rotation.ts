import { randomBytes } from 'node:crypto'
import { misconfigured } from '../../domain/backend-error.ts'
import type { Rotation } from '../kind.ts'
import type { Config } from './config.ts'
import { scramVerifier } from './scram.ts'
import { quoteLiteral } from './statements.ts'
import type { Upstream } from './upstream.ts'

/**
 * Every role may change its own password (PostgreSQL, ALTER ROLE), so this needs no privilege, and no function of the setup
 * script. The old password ends with the change; open sessions stay. Undefined for a login without a password.
 */
export function rotationOf({ settings, issuing }: Upstream): Rotation | undefined {
  if (settings.password === undefined) return undefined
  return {
    propose: async () => ({ password: randomBytes(32).toString('base64url') }) satisfies Partial<Config>,
    async adopt({ password }, signal) {
      if (password === undefined) throw misconfigured('There is no new password.')
      const verifier = quoteLiteral(await scramVerifier(password))
      await issuing.transact(settings.database, signal, [`ALTER ROLE SESSION_USER PASSWORD ${verifier}`])
    },
  }
}
