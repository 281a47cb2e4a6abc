import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { ldap } from './ldap/kind.ts'
import { postgres } from './postgres/kind.ts'
import { ssh } from './ssh/kind.ts'
import { x509 } from './x509/kind.ts'

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [jwt, ldap, postgres, ssh, x509] as unknown as readonly Kind[]
