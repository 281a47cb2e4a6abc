import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { Loaded } from '../config/load.ts'
import { FIELDS } from '../config/schema.ts'
import type { NodeState } from '../core/server/nodes.ts'
import { canonicalJson } from '../domain/formats/canonical-json.ts'
import type { Recipes } from './recipes.ts'
import { VERSION } from './version.ts'

/** The settings that all nodes need the same, as digests. `recipes_dir` stands for what is in it. */
export function describeNode(id: string, { given, config }: Loaded, recipes: Recipes): NodeState {
  const shared = FIELDS.filter(({ isShared }) => isShared).map(({ path }) => [path, given[path] ?? null])
  const values = {
    ...Object.fromEntries(shared),
    issuer: config.issuer,
    recipes_dir: [...recipes.byDigest.keys()],
  }
  const settings = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, digestOf(canonicalJson(value))]),
  )
  return { id, host: hostname(), version: VERSION, settings }
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)
