import { anthropic } from './anthropic/kind.ts'
import { aws } from './aws/kind.ts'
import { azure } from './azure/kind.ts'
import { gcp } from './gcp/kind.ts'
import { github } from './github/kind.ts'
import { RECIPES } from './http/builtin.ts'
import { kindOf } from './http/kind.ts'
import type { Recipe } from './http/schema.ts'
import { jwt } from './jwt/kind.ts'
import type { Kind } from './kind.ts'
import { kubernetes } from './kubernetes/kind.ts'
import { ldap } from './ldap/kind.ts'
import { mqtt } from './mqtt/kind.ts'
import { mysql } from './mysql/kind.ts'
import { nats } from './nats/kind.ts'
import { oauth2, oauth2Revocable } from './oauth2/kind.ts'
import { postgres } from './postgres/kind.ts'
import { rabbitmq } from './rabbitmq/kind.ts'
import { redis } from './redis/kind.ts'
import { registry } from './registry/kind.ts'
import { ssh } from './ssh/kind.ts'
import { vault, vaultSecret } from './vault/kind.ts'
import { x509 } from './x509/kind.ts'

/** A test has found them free of faults. */
const recipes = (RECIPES as readonly Recipe[]).map(kindOf)

/**
 * The built-in kinds. Each has the type of its own configuration, which the list cannot keep: callers check the
 * configuration against `kind.config` before they open a kind.
 */
export const kinds = [
  anthropic,
  aws,
  azure,
  gcp,
  github,
  jwt,
  kubernetes,
  ldap,
  mqtt,
  mysql,
  nats,
  oauth2,
  oauth2Revocable,
  postgres,
  rabbitmq,
  redis,
  registry,
  ssh,
  vault,
  vaultSecret,
  x509,
  ...recipes,
] as unknown as readonly Kind[]
