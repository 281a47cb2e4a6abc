import { aws } from './aws/kind.ts'
import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { mysql } from './mysql/kind.ts'
import { postgres } from './postgres/kind.ts'
import { redis } from './redis/kind.ts'

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [aws, jwt, mysql, postgres, redis] as unknown as readonly Kind[]
