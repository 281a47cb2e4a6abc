import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../backends/config-fields.ts'
import { findRecipeFaults } from '../backends/http/check.ts'
import { kindOf } from '../backends/http/kind.ts'
import type { Recipe } from '../backends/http/schema.ts'
import { kinds } from '../backends/index.ts'
import type { Kind } from '../backends/kind.ts'
import { BackendError, misconfigured } from '../domain/backend-error.ts'
import { ConfigError, type Fault, quote } from '../domain/fault.ts'
import { UPSTREAM_TIMEOUT_MS } from '../domain/limits.ts'
import { networkOf } from '../egress/fetch.ts'
import { createResolver } from '../egress/resolver.ts'
import { fileFault, type ReadFile } from '../files/read-secret.ts'
import { readConfigFile } from '../files/yaml-file.ts'

const IS_RECIPE = /\.ya?ml$/

export interface LoadedRecipe {
  readonly file: string
  readonly kind: Kind
  readonly privileges: string
}

/** Reads one recipe. Throws `ConfigError` with every fault and its place. `taken`: types that exist already. */
export async function readRecipe(
  path: string,
  readFile: ReadFile,
  taken: ReadonlySet<string>,
): Promise<LoadedRecipe> {
  const file = await readConfigFile(path, path, readFile)
  const faults: Fault[] = findRecipeFaults(file.value).map(({ path: at, message }) => ({
    source: file.locate(at, message === 'is not known here' ? 'key' : 'value'),
    message: at.length === 0 ? `the recipe ${message}` : `${at.join('.')} ${message}`,
  }))
  const { type } = file.value
  if (typeof type === 'string' && taken.has(type)) {
    faults.push({ source: file.locate(['type']), message: `type: there is a kind ${quote(type)} already` })
  }
  if (faults.length > 0) throw new ConfigError(faults)
  const recipe = file.value as unknown as Recipe
  return { file: path, kind: kindOf(recipe), privileges: recipe.privileges }
}

/** The types that a recipe cannot have. */
export const builtInTypes = () => new Set(kinds.map(({ type }) => type))

/** The recipes of a directory. */
export interface Recipes {
  /** In the order of the names of the files. */
  readonly kinds: readonly Kind[]
  /** Of the files that are left out. */
  readonly faults: readonly Fault[]
  /** The kinds by the SHA-256 of their files. */
  readonly byDigest: ReadonlyMap<string, Kind>
}

export const NO_RECIPES: Recipes = { kinds: [], faults: [], byDigest: new Map() }

/**
 * Reads all that are sound: a faulty recipe breaks its own backends, and nothing else. A file that is as `before` stays the same kind, so
 * that its backends stay open. Throws `ConfigError` if the directory cannot be read.
 */
export async function readRecipes(
  directory: string | undefined,
  readFile: ReadFile,
  before = NO_RECIPES,
): Promise<Recipes> {
  if (directory === undefined) return NO_RECIPES
  const names = await readdir(directory).catch((error: unknown) => {
    throw new ConfigError([
      { source: 'recipes_dir', message: `the directory ${quote(directory)} ${fileFault(error)}` },
    ])
  })
  const taken = builtInTypes()
  const faults: Fault[] = []
  const byDigest = new Map<string, Kind>()
  for (const name of names.filter((one) => IS_RECIPE.test(one)).sort()) {
    try {
      let digest = ''
      const readDigested: ReadFile = async (path) => {
        const bytes = await readFile(path)
        digest = createHash('sha256').update(bytes).digest('hex')
        return bytes
      }
      const { kind } = await readRecipe(join(directory, name), readDigested, taken)
      taken.add(kind.type)
      byDigest.set(digest, before.byDigest.get(digest) ?? kind)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults.push(...error.faults)
    }
  }
  return { kinds: [...byDigest.values()], faults, byDigest }
}

/** The check of a backend, from this machine. Returns what is wrong, in one sentence, or `undefined`. */
export async function tryKind(
  kind: Kind,
  given: Readonly<Record<string, unknown>>,
): Promise<string | undefined> {
  const { config, faults } = readConfig(kind.config, given)
  if (faults.length > 0) return `${faults.join('. ')}.`
  const lookup = createResolver().addresses
  const issuer = 'http://127.0.0.1:8620'
  try {
    const log = { warn: () => undefined, debug: () => undefined }
    const complete = (await kind.complete?.(config)) ?? config
    await using backend = await kind.open(complete, {
      name: kind.type,
      uid: 'be_00000000000000000000000000',
      issuer: `${issuer}/backends/${kind.type}`,
      issuerUrl: issuer,
      idToken: () => Promise.reject(misconfigured('Only a server can sign tokens.')),
      // No recipe keeps anything.
      state: { read: async () => undefined, replace: async () => false },
      now: Date.now,
      timeoutMs: UPSTREAM_TIMEOUT_MS,
      ...networkOf(kind, config, { lookup, timeoutMs: UPSTREAM_TIMEOUT_MS, log }),
      log,
    })
    await backend.check(AbortSignal.timeout(3 * UPSTREAM_TIMEOUT_MS))
    return undefined
  } catch (error) {
    if (!(error instanceof BackendError)) throw error
    return error.message
  }
}
