import { aws } from './aws/kind.ts'
import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { oauth2, oauth2Revocable } from './oauth2/kind.ts'
import { postgres } from './postgres/kind.ts'
import { vault, vaultSecret } from './vault/kind.ts'

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [
  aws,
  jwt,
  oauth2,
  oauth2Revocable,
  postgres,
  vault,
  vaultSecret,
] as unknown as readonly Kind[]
