import type { TSchema } from 'typebox'
import { text } from '../frame/options.ts'

/** What the verbs of administrators have in common. */
export const ADMIN = { exits: [3, 4, 5], admin: true } as const

/** What a listing may be limited to. */
export const FILTERS = {
  backend: text('<name>', 'only this backend', { values: 'backends' }),
  agent: text('<name>', 'only this agent, by name or id', { values: 'agents' }),
}

/** The schema of an array of these. */
export const arrayOf = (item: () => Promise<TSchema>, description?: string) => async () => {
  const { Type } = await import('typebox')
  return Type.Array(await item(), description === undefined ? {} : { description })
}
