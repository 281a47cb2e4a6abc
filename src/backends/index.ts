import { aws } from './aws/kind.ts'
import { github } from './github/kind.ts'
import { RECIPES } from './http/builtin.ts'
import { kindOf } from './http/kind.ts'
import type { Recipe } from './http/schema.ts'
import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { mysql } from './mysql/kind.ts'
import { oauth2, oauth2Revocable } from './oauth2/kind.ts'
import { postgres } from './postgres/kind.ts'
import { rabbitmq } from './rabbitmq/kind.ts'
import { registry } from './registry/kind.ts'
import { ssh } from './ssh/kind.ts'
import { vault, vaultSecret } from './vault/kind.ts'

/** A test has found them free of faults. */
const recipes = (RECIPES as readonly Recipe[]).map(kindOf)

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [
  aws,
  github,
  jwt,
  mysql,
  oauth2,
  oauth2Revocable,
  postgres,
  rabbitmq,
  registry,
  ssh,
  vault,
  vaultSecret,
  ...recipes,
] as unknown as readonly Kind[]
