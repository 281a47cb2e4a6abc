import { nameKey } from '../domain/agent.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import * as fields from './config-fields.ts'
import type { Backend, Host, Kind } from './kind.ts'

/** What is configured, as the store keeps it; `config` is opened already. */
export interface BackendDefinition {
  readonly uid: string
  readonly name: string
  readonly type: string
  readonly version: number
  readonly config: Record<string, unknown>
  readonly defaultTtlMs: number
  readonly maxTtlMs: number
  readonly allowedScopes: readonly string[] | undefined
  readonly description: string | null
  readonly rate: { readonly count: number; readonly perMs: number } | undefined
  readonly maxActive: number | undefined
  readonly createdAt: number
  /** Epoch ms when it was deleted; it stays open for its credentials' sake. */
  readonly endedAt: number | null
}

/** A backend ready for use. Its upstream connection is made when it is first needed. */
export interface OpenBackend extends BackendDefinition {
  readonly kind: Kind
  readonly breaker: Breaker
  connect(): Promise<Backend>
}

export interface BackendSet {
  /** Living ones, by name key. */
  readonly byName: ReadonlyMap<string, OpenBackend>
  /** With those that have ended but still have credentials. */
  readonly byUid: ReadonlyMap<string, OpenBackend>
}

export interface Registry {
  readonly kinds: ReadonlyMap<string, Kind>
  at(generation: number): BackendSet | Promise<BackendSet>
  /** The configuration with its defaults, and what is wrong with it: paths, never values. */
  readConfig(kind: Kind, value: unknown): { config: Record<string, unknown>; faults: string[] }
  /** What is wrong with the options of one request: paths, never values. */
  paramFaults(kind: Kind, params: Record<string, unknown>): string[]
  /** Every secret that is there as `[redacted]`. */
  redact(kind: Kind, config: Record<string, unknown>): Record<string, unknown>
  /** A secret left out or sent back as `[redacted]` keeps its old value. */
  keepSecrets(
    kind: Kind,
    before: Record<string, unknown>,
    after: Record<string, unknown>,
  ): Record<string, unknown>
  /** A secret that `keepSecrets` takes from before, and the field by which it would be sent elsewhere, or less protected. */
  findExposed(
    kind: Kind,
    before: Record<string, unknown>,
    given: Record<string, unknown>,
    after: Record<string, unknown>,
  ): { readonly secret: string; readonly by: string } | undefined
  /** The first field by which another upstream is meant than before, if any. Both have their defaults. */
  findMove(kind: Kind, before: Record<string, unknown>, after: Record<string, unknown>): string | undefined
  /** One that is not stored: to try a configuration. The caller disposes of it. */
  openTrial(kind: Kind, name: string, config: Record<string, unknown>): Promise<Backend>
  /** The instances of this node, of one kind or of all, are replaced when they are next asked for. */
  reload(kind: string | undefined): void
  close(): Promise<void>
}

export interface RegistryParts {
  readonly kinds: readonly Kind[]
  load(): Promise<BackendDefinition[]>
  /** `at` of a value that is kept per generation of the store. */
  snapshot<T>(load: () => Promise<T>): { at(generation: number): T | Promise<T> }
  host(name: string): Host
  now(): number
  onError(name: string, error: unknown): void
}

interface Live {
  readonly open: OpenBackend
  readonly dispose: () => Promise<void>
}

/** How long a replaced instance is left to what is under way on it, in ms. */
const LINGER_MS = 30_000

export function createRegistry(parts: RegistryParts): Registry {
  const kinds = new Map(parts.kinds.map((kind) => [kind.type, kind]))
  const live = new Map<string, Live>()

  function ready(definition: BackendDefinition): OpenBackend {
    const key = `${definition.uid}@${definition.version}`
    const known = live.get(key)
    if (known !== undefined) return known.open
    const kind = kinds.get(definition.type)
    if (kind === undefined) throw new Error(`no kind "${definition.type}" for the backend ${definition.name}`)
    let instance: Promise<Backend> | undefined
    const open: OpenBackend = {
      ...definition,
      kind,
      breaker: createBreaker(parts.now),
      connect: () => {
        instance ??= kind.open(definition.config, parts.host(definition.name)).catch((error: unknown) => {
          instance = undefined
          throw error
        })
        return instance
      },
    }
    live.set(key, {
      open,
      dispose: async () => {
        const old = instance
        // Whoever still holds this one is given a new instance, never a closed one.
        instance = undefined
        await (await old)?.[Symbol.asyncDispose]()
      },
    })
    return open
  }

  function retire(kept: ReadonlySet<string>): void {
    for (const [key, one] of live) if (!kept.has(key)) linger(key, one)
  }

  function linger(key: string, one: Live): void {
    live.delete(key)
    const dispose = () => void one.dispose().catch((error: unknown) => parts.onError(one.open.name, error))
    setTimeout(dispose, LINGER_MS).unref()
  }

  const current = parts.snapshot<BackendSet>(async () => {
    const byName = new Map<string, OpenBackend>()
    const byUid = new Map<string, OpenBackend>()
    for (const definition of await parts.load()) {
      if (!kinds.has(definition.type)) {
        parts.onError(definition.name, new Error(`there is no kind "${definition.type}"`))
        continue
      }
      const open = ready(definition)
      byUid.set(definition.uid, open)
      if (definition.endedAt === null) byName.set(nameKey(definition.name), open)
    }
    retire(new Set([...byUid.values()].map((one) => `${one.uid}@${one.version}`)))
    return { byName, byUid }
  })

  return {
    kinds,
    at: current.at,
    readConfig: (kind, value) => {
      const config = fields.applyDefaults(kind.config, value)
      return { config: config as Record<string, unknown>, faults: fields.validateConfig(kind.config, config) }
    },
    paramFaults: (kind, params) => fields.findParamFaults(kind.params, params),
    redact: (kind, config) => fields.redactConfig(kind.config, config),
    keepSecrets: (kind, before, after) => fields.keepSecrets(kind.config, before, after),
    findExposed: (kind, before, given, after) => fields.findExposed(kind.config, before, given, after),
    findMove: (kind, before, after) => fields.findMove(kind.config, before, after),
    openTrial: (kind, name, config) => kind.open(config, parts.host(name)),
    reload: (kind) => {
      for (const [key, one] of live) if (kind === undefined || one.open.kind.type === kind) linger(key, one)
    },
    close: async () => {
      await Promise.allSettled([...live.values()].map((one) => one.dispose()))
      live.clear()
    },
  }
}
