import type { Core } from '../context.ts'

/** What a node says of itself, so that others can compare it with their own. */
export interface NodeState {
  /** Of this process. */
  readonly id: string
  readonly host: string
  readonly version: string
  /** A digest of each setting that all nodes need the same, by its name. */
  readonly settings: Readonly<Record<string, string>>
}

export interface NodeView extends Omit<NodeState, 'settings'> {
  readonly isThis: boolean
  /** Epoch ms. */
  readonly seenAt: number
  /** The settings that it has otherwise than this node. */
  readonly differs: readonly string[]
}

type Said = NodeState & { readonly at: number }

/** A node says it three times as often. */
const FRESH_MS = 90_000

/** Says what this node is, and forgets those that have said nothing for long. A store without other nodes needs nothing. */
export async function announceNode({ store }: Pick<Core, 'store'>, self: NodeState): Promise<void> {
  if (!store.hasOtherNodes) return
  const now = store.now()
  const said: Said = { ...self, at: now }
  const gone = (await readNodes(store)).filter(({ at, id }) => id !== self.id && at < now - FRESH_MS)
  await store.commit([
    ...gone.map(({ id }) => store.meta.remove(keyOf(id))),
    store.meta.remove(keyOf(self.id)),
    store.meta.add(keyOf(self.id), JSON.stringify(said)),
  ])
}

export async function leaveNodes({ store }: Pick<Core, 'store'>, { id }: NodeState): Promise<void> {
  if (store.hasOtherNodes) await store.commit([store.meta.remove(keyOf(id))])
}

/** This node first, then the others that were heard in the last 90 s. */
export async function listNodes({ store }: Pick<Core, 'store'>, self: NodeState): Promise<NodeView[]> {
  const now = store.now()
  const others = (await readNodes(store)).filter(({ at, id }) => id !== self.id && at >= now - FRESH_MS)
  return [{ ...self, at: now }, ...others].map(({ settings, at, ...node }) => ({
    ...node,
    isThis: node.id === self.id,
    seenAt: at,
    differs: differences(self.settings, settings),
  }))
}

function differences(own: NodeState['settings'], other: NodeState['settings']): string[] {
  const names = new Set([...Object.keys(own), ...Object.keys(other)])
  return [...names].filter((name) => own[name] !== other[name]).sort()
}

const PREFIX = 'node|'
const keyOf = (id: string) => `${PREFIX}${id}`

async function readNodes(store: Core['store']): Promise<Said[]> {
  return (await store.meta.list(PREFIX)).map(({ value }) => JSON.parse(value) as Said)
}
