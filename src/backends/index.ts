import { anthropic } from './anthropic/kind.ts'
import { aws } from './aws/kind.ts'
import { azure } from './azure/kind.ts'
import { gcp } from './gcp/kind.ts'
import { github } from './github/kind.ts'
import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { kubernetes } from './kubernetes/kind.ts'
import { postgres } from './postgres/kind.ts'

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [
  aws,
  jwt,
  postgres,
  github,
  kubernetes,
  gcp,
  azure,
  anthropic,
] as unknown as readonly Kind[]
