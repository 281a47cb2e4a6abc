import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { postgres } from './postgres/kind.ts'

/**
 * The built-in kinds. Each is typed by its own configuration; here, where they are held together, that type is
 * given up: whoever opens one has checked the configuration against `kind.config` first.
 */
export const kinds = [jwt, postgres] as unknown as readonly Kind[]
