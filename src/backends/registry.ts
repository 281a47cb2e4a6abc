import { nameKey } from '../domain/agent.ts'
import type { StoredBackend } from '../domain/backend.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { type Backend, BackendError, type Host, type Kind } from './kind.ts'

/** A stored backend with its configuration opened. */
export interface BackendDefinition
  extends Pick<
    StoredBackend,
    | 'uid'
    | 'name'
    | 'type'
    | 'version'
    | 'defaultTtlMs'
    | 'maxTtlMs'
    | 'description'
    | 'createdAt'
    | 'endedAt'
    | 'ending'
  > {
  /** Undefined: it is stored and cannot be opened, so that the backend is broken until it is configured again. */
  readonly config: Record<string, unknown> | undefined
  /** Undefined permits every scope. */
  readonly allowedScopes: readonly string[] | undefined
  readonly rate: { readonly count: number; readonly perMs: number } | undefined
  readonly maxActive: number | undefined
}

/** A backend ready for use. Its upstream connection is made when it is first needed. */
export interface OpenBackend extends BackendDefinition {
  readonly kind: Kind
  /** One for each direction, so that failed issues, which agents can cause, hold back no revocation. */
  readonly breakers: { readonly issuing: Breaker; readonly revoking: Breaker }
  connect(): Promise<Backend>
}

export interface BackendSet {
  /** Those that are neither deleted nor being deleted, by name key. */
  readonly byName: ReadonlyMap<string, OpenBackend>
  /** Including deleted ones that still have credentials. */
  readonly byUid: ReadonlyMap<string, OpenBackend>
}

export interface Registry {
  readonly kinds: ReadonlyMap<string, Kind>
  at(generation: number): BackendSet | Promise<BackendSet>
  /** Opens a configuration that is not stored, to try it. The caller disposes of it. */
  openTrial(kind: Kind, of: Named, config: Record<string, unknown>): Promise<Backend>
  /** Replaces the instances of this node, of one kind or of all, when they are next needed. */
  reload(kind: string | undefined): void
  close(): Promise<void>
}

/** Which backend it is. */
type Named = Pick<BackendDefinition, 'uid' | 'name'>

export interface RegistryParts {
  readonly kinds: readonly Kind[]
  load(): Promise<BackendDefinition[]>
  /** A value that is kept until the stored backends change. */
  snapshot<T>(load: () => Promise<T>): { at(generation: number): T | Promise<T> }
  host(of: Named): Host
  /** How long a replaced instance stays open for calls under way. */
  readonly lingerMs: number
  now(): number
  onError(name: string, error: unknown): void
}

interface Live {
  readonly open: OpenBackend
  readonly dispose: () => Promise<void>
}

const UNREADABLE =
  'The stored configuration of this backend cannot be opened; enter it again, or delete the backend.'

export function createRegistry(parts: RegistryParts): Registry {
  const kinds = new Map(parts.kinds.map((kind) => [kind.type, kind]))
  const live = new Map<string, Live>()

  async function openInstance(kind: Kind, definition: BackendDefinition): Promise<Backend> {
    if (definition.config === undefined) throw new BackendError('misconfigured', UNREADABLE)
    return kind.open(definition.config, parts.host(definition))
  }

  function ready(definition: BackendDefinition): OpenBackend {
    const key = `${definition.uid}@${definition.version}`
    const known = live.get(key)
    if (known !== undefined) return known.open
    const kind = kinds.get(definition.type)
    if (kind === undefined) throw new Error(`no kind "${definition.type}" for the backend ${definition.name}`)
    if (definition.config === undefined) parts.onError(definition.name, new Error(UNREADABLE))
    let instance: Promise<Backend> | undefined
    const open: OpenBackend = {
      ...definition,
      kind,
      breakers: { issuing: createBreaker(parts.now), revoking: createBreaker(parts.now) },
      connect: () => {
        instance ??= openInstance(kind, definition).catch((error: unknown) => {
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
        // A caller that still holds this backend gets a new instance, never a closed one.
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
    setTimeout(dispose, parts.lingerMs).unref()
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
      if (definition.endedAt === null && definition.ending === null)
        byName.set(nameKey(definition.name), open)
    }
    retire(new Set([...byUid.values()].map((one) => `${one.uid}@${one.version}`)))
    return { byName, byUid }
  })

  return {
    kinds,
    at: current.at,
    openTrial: (kind, of, config) => kind.open(config, parts.host(of)),
    reload: (kind) => {
      for (const [key, one] of live) if (kind === undefined || one.open.kind.type === kind) linger(key, one)
    },
    close: async () => {
      await Promise.allSettled([...live.values()].map((one) => one.dispose()))
      live.clear()
    },
  }
}
