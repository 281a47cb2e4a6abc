import { aws } from './aws/kind.ts'
import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { mqtt } from './mqtt/kind.ts'
import { nats } from './nats/kind.ts'
import { postgres } from './postgres/kind.ts'
import { rabbitmq } from './rabbitmq/kind.ts'

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [aws, jwt, mqtt, nats, postgres, rabbitmq] as unknown as readonly Kind[]
