import { afterEach, expect, it, vi } from 'vitest'
import type { Kind } from './kind.ts'
import { type BackendDefinition, createRegistry } from './open-backends.ts'

afterEach(() => vi.useRealTimers())

it('keeps a replaced instance open as long as a call on it may take', async () => {
  vi.useFakeTimers()
  let open = 0
  const closed = () => {
    open -= 1
  }
  const kind = {
    type: 'fake',
    open: async () => {
      open += 1
      return { [Symbol.asyncDispose]: async () => closed() }
    },
  } as unknown as Kind
  let version = 1
  const registry = createRegistry({
    kinds: [kind],
    load: async () => [
      {
        uid: 'be_1',
        name: 'db',
        type: 'fake',
        version,
        config: {},
        endedAt: null,
        ending: null,
      } as BackendDefinition,
    ],
    snapshot: (load) => ({ at: load, forget: () => undefined }),
    host: () => ({}) as never,
    lingerMs: 180_000,
    now: Date.now,
    onError: () => undefined,
  })
  await (await registry.at(1)).byUid.get('be_1')?.connect()
  version = 2
  await registry.at(2)
  await vi.advanceTimersByTimeAsync(179_000)
  expect(open).toBe(1)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(open).toBe(0)
})
