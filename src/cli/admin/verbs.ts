import type { TSchema } from 'typebox'

/** What the verbs of administrators have in common. */
export const ADMIN = { exits: [3, 4, 5], admin: true } as const

/** The schema of an array of these. */
export const arrayOf = (item: () => Promise<TSchema>, description?: string) => async () => {
  const { Type } = await import('typebox')
  return Type.Array(await item(), description === undefined ? {} : { description })
}
