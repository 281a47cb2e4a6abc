import { nameKey } from '../domain/agent.ts'
import type { StoredBackend } from '../domain/backend.ts'
import { misconfigured } from '../domain/backend-error.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import type { Backend, Host, Kind } from './kind.ts'
import { createKindSet, missingKind } from './kind-set.ts'
import { createLanes, type Lanes } from './lanes.ts'

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
    | 'rotateRootAfterMs'
    | 'rootSetAt'
    | 'uses'
  > {
  /** Undefined: it is stored and cannot be opened, so that the backend is broken until it is configured again. */
  readonly config: Record<string, unknown> | undefined
  /** Undefined permits every scope. */
  readonly allowedScopes: readonly string[] | undefined
  readonly rate: { readonly count: number; readonly perMs: number } | undefined
  readonly maxActive: number | undefined
  readonly rotation: PendingRotation | undefined
}

/** A rotation of a root secret that has not ended (ADR 0033). */
export interface PendingRotation {
  readonly id: string
  /** Epoch ms. */
  readonly since: number
  /** The configuration with the new secrets while either may be valid. Undefined: only the old ones are still to be ended. */
  readonly proposed: Record<string, unknown> | undefined
}

/** A backend ready for use. Its upstream connection is made when it is first needed. */
export interface OpenBackend extends BackendDefinition {
  readonly kind: Kind
  /** One for each direction, so that failed issues, which agents can cause, hold back no revocation. */
  readonly breakers: { readonly issuing: Breaker; readonly revoking: Breaker }
  readonly lanes: Lanes
  connect(): Promise<Backend>
  /** While a rotation is pending: the instance with the secrets that `refused` does not have. */
  connectOther(refused: Backend): Promise<Backend | undefined>
  /** `connect` returns this instance from now on: its secrets are the valid ones. */
  prefer(instance: Backend): void
}

export interface BackendSet {
  /** Those that are neither deleted nor being deleted, by name key. */
  readonly byName: ReadonlyMap<string, OpenBackend>
  /** Including deleted ones that still have credentials. */
  readonly byUid: ReadonlyMap<string, OpenBackend>
}

export interface Registry {
  /** Those of Mayfly itself, and those of plugins as of the latest `at` of this node. */
  readonly kinds: ReadonlyMap<string, Kind>
  at(generation: number): BackendSet | Promise<BackendSet>
  /** Opens a configuration that is not stored, to try it. The caller disposes of it. */
  openTrial(kind: Kind, of: Named, config: Record<string, unknown>): Promise<Backend>
  /** Replaces the instances of this node, of one kind or of all, when they are next needed. */
  reload(kind: string | undefined): void
  /** From now on these are the kinds that stay; backends of a kind that is another, or gone, are opened anew. */
  replaceKinds(kinds: readonly Kind[]): void
  close(): Promise<void>
}

/** Which backend it is. */
type Named = Pick<BackendDefinition, 'uid' | 'name'>

export interface RegistryParts {
  readonly kinds: readonly Kind[]
  /** The kinds that can come and go: those of the plugins that are pinned now. */
  loadKinds?(): Promise<readonly Kind[]>
  load(): Promise<BackendDefinition[]>
  /** A value that is kept until the stored backends change. */
  snapshot<T>(load: () => Promise<T>): { at(generation: number): T | Promise<T>; forget(): void }
  host(of: Named, kind: Kind, config: Readonly<Record<string, unknown>>): Host
  /** How long a replaced instance stays open for calls under way. */
  readonly lingerMs: number
  now(): number
  onError(name: string, error: unknown): void
}

/** An instance that is opened when it is first needed. */
interface Instance {
  open(): Promise<Backend>
  has(instance: Backend): boolean
  close(): Promise<void>
}

function keepOpen(make: () => Promise<Backend>): Instance {
  let opening: Promise<Backend> | undefined
  let opened: Backend | undefined
  return {
    open: () => {
      opening ??= make().then(
        (instance) => {
          opened = instance
          return instance
        },
        (error: unknown) => {
          opening = undefined
          throw error
        },
      )
      return opening
    },
    has: (instance) => opened === instance,
    close: async () => {
      const old = opening
      // A caller that still holds this backend gets a new instance, never a closed one.
      opening = undefined
      await (await old)?.[Symbol.asyncDispose]()
    },
  }
}

/** A rotation leaves the version alone until it makes its proposal the configuration. */
function keyOf({ uid, version, rotation }: BackendDefinition): string {
  const stage = rotation === undefined ? '' : `+${rotation.id}${rotation.proposed === undefined ? '' : '?'}`
  return `${uid}@${version}${stage}`
}

interface Live {
  readonly open: OpenBackend
  readonly dispose: () => Promise<void>
}

const UNREADABLE =
  'The stored configuration of this backend cannot be opened; enter it again, or delete the backend.'

function createLive(parts: RegistryParts, kind: Kind, definition: BackendDefinition, broken: string): Live {
  const instanceOf = (config: BackendDefinition['config']) =>
    keepOpen(async () => {
      if (config === undefined) throw misconfigured(broken)
      return kind.open(config, parts.host(definition, kind, config))
    })
  const { rotation } = definition
  const present = instanceOf(definition.config)
  const proposed = rotation?.proposed && instanceOf(rotation.proposed)
  let preferred = present
  return {
    open: {
      ...definition,
      kind,
      breakers: { issuing: createBreaker(parts.now), revoking: createBreaker(parts.now) },
      lanes: createLanes(),
      connect: () => preferred.open(),
      connectOther: async (refused) =>
        proposed && ((await present.open()) === refused ? proposed : present).open(),
      prefer: (instance) => {
        preferred = proposed?.has(instance) === true ? proposed : present
      },
    },
    dispose: async () => {
      await Promise.all([present.close(), proposed?.close()])
    },
  }
}

export function createRegistry(parts: RegistryParts): Registry {
  const kinds = createKindSet(parts)
  const live = new Map<string, Live>()

  function ready(stored: BackendDefinition): OpenBackend {
    const { kind, isMissing } = kinds.find(stored.type)
    const key = keyOf(stored)
    const known = live.get(key)
    // A plugin with new bytes is another kind.
    if (known?.open.kind === kind) return known.open
    if (known !== undefined) linger(key, known)
    const definition = isMissing ? { ...stored, config: undefined, rotation: undefined } : stored
    const broken = isMissing ? missingKind(stored.type) : UNREADABLE
    if (definition.config === undefined) parts.onError(definition.name, new Error(broken))
    const one = createLive(parts, kind, definition, broken)
    live.set(key, one)
    return one.open
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
    const [definitions] = await Promise.all([parts.load(), kinds.load()])
    const keys = new Set<string>()
    for (const definition of definitions) {
      const open = ready(definition)
      keys.add(keyOf(definition))
      byUid.set(definition.uid, open)
      if (definition.endedAt === null && definition.ending === null)
        byName.set(nameKey(definition.name), open)
    }
    retire(keys)
    return { byName, byUid }
  })

  return {
    get kinds() {
      return kinds.current()
    },
    at: current.at,
    openTrial: (kind, of, config) => kind.open(config, parts.host(of, kind, config)),
    reload: (kind) => {
      for (const [key, one] of live) if (kind === undefined || one.open.kind.type === kind) linger(key, one)
    },
    replaceKinds: (all) => {
      kinds.replace(all)
      current.forget()
    },
    close: async () => {
      await Promise.allSettled([...live.values()].map((one) => one.dispose()))
      live.clear()
    },
  }
}
