import type { AsyncCommand } from 'fast-check'
import type { Model } from './model.ts'
import type { World } from './world.ts'

export type Command = AsyncCommand<Model, World>

export const command = (text: string, run: (model: Model, world: World) => Promise<void>): Command => ({
  check: () => true,
  run,
  toString: () => text,
})

/** The element at `index`, modulo the length; undefined for an empty list. */
export const pick = <T>(all: readonly T[], index: number): T | undefined =>
  all[index % Math.max(1, all.length)]
