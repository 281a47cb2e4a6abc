import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { postgres } from './postgres/kind.ts'

/**
 * The built-in kinds. Each is typed by its own configuration; the list gives that type up, so check a configuration
 * against `kind.config` before opening it.
 */
export const kinds = [jwt, postgres] as unknown as readonly Kind[]
