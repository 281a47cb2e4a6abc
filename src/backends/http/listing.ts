import { denied } from '../../domain/backend-error.ts'
import { namedAccounts } from '../account-name.ts'
import type { Handle, Listed, ListedPage } from '../kind.ts'
import type { Send } from './calls.ts'
import type { ExpirySpec, ListSpec, Recipe } from './schema.ts'
import { odd, takeAll } from './send.ts'
import { pointAt, type Vars } from './template.ts'

export type Accounts = ReturnType<typeof accountsOf>

export const accountsOf = ({ naming }: Recipe) => namedAccounts('name', 'an account', naming?.prefix)

/** Readings of a list of several pages, of which two must agree. */
const PASSES = 5

export interface Listing {
  /** One page of our accounts at one place; `after` is the `next` of the page before. */
  page(after: string | undefined, signal: AbortSignal): Promise<ListedPage>
  /** The handles of the accounts that have this name, wherever they are. */
  find(name: string, signal: AbortSignal): Promise<readonly Handle[]>
  /** Throws if a place cannot be listed: the account's place, or any place if no account is given. */
  requireReadable(handle: Handle | undefined, signal: AbortSignal): Promise<void>
}

/** Lists place after place, page after page. The position is `<index of the place>:<cursor or number of the page>`. */
export function createListing(
  recipe: Recipe,
  list: ListSpec,
  places: readonly Vars[],
  settings: Vars,
  send: Send,
): Listing {
  const nameless = `${recipe.naming?.prefix ?? 'mf_'}${'0'.repeat(26)}`
  async function read(
    after: string | undefined,
    name: string | undefined,
    signal: AbortSignal,
  ): Promise<ListedPage> {
    const [, index = '0', cursor = ''] = /^(\d+):(.*)$/s.exec(after ?? '') ?? []
    const vars = { ...settings, ...places[Number(index)] }
    const page = /^\d+$/.test(cursor) ? Number(cursor) : 1
    const asked = { ...vars, name, page, ...(cursor === '' ? {} : { after: cursor }) }
    const reply = (await send(list, { vars: asked, signal })).json()
    const items = list.items === undefined ? reply : pointAt(reply, list.items)
    if (!Array.isArray(items)) throw odd(recipe)
    const following = nextOf(recipe, list, reply, { page, cursor, count: items.length })
    const next = following === undefined ? Number(index) + 1 : `${index}:${following}`
    const position = typeof next === 'string' ? next : next < places.length ? `${next}:` : undefined
    return {
      items: items.flatMap((item) => listedOf(recipe, list, item, vars)),
      ...(position === undefined ? {} : { next: position }),
    }
  }
  /** All pages, up to the one that has the name. */
  async function look(name: string, signal: AbortSignal) {
    const seen: string[] = []
    let pages = 0
    for (let after: string | undefined; ; ) {
      const { items, next } = await read(after, name, signal)
      pages += 1
      seen.push(...items.map(({ handle }) => String(handle['name'])))
      const found = items.filter(({ handle }) => handle['name'] === name).map(({ handle }) => handle)
      if (found.length > 0 || next === undefined) return { found, pages, seen: seen.join() }
      after = next
    }
  }
  return {
    page: (after, signal) => read(after, undefined, signal),
    async find(name, signal) {
      let before: string | undefined
      for (let pass = 0; pass < PASSES; pass += 1) {
        const { found, pages, seen } = await look(name, signal)
        // An account that ends moves all behind it to where a pass has been already: what two passes miss alike is not there.
        if (found.length > 0 || pages === places.length || seen === before) return found
        before = seen
      }
      throw denied(`${recipe.title}: the list changes while Mayfly reads it.`)
    },
    async requireReadable(handle, signal) {
      const isAt = (place: Vars) => Object.entries(place).every(([part, value]) => handle?.[part] === value)
      const here = [...places.keys()].filter((index) => handle === undefined || isAt(places[index] ?? {}))
      // With a name that never exists, so that an upstream that searches by name sends a short reply.
      for (const index of here.length === 0 ? [0] : here) await read(`${index}:`, nameless, signal)
    },
  }
}

interface Position {
  readonly page: number
  readonly cursor: string
  readonly count: number
}

function nextOf(
  recipe: Recipe,
  { next }: ListSpec,
  reply: unknown,
  { page, cursor, count }: Position,
): string | undefined {
  if (next?.while !== undefined && pointAt(reply, next.while) !== true) return undefined
  if (next?.size !== undefined) {
    const isLast = next.capped === true ? count === 0 : count < next.size
    return isLast ? undefined : String(page + 1)
  }
  const following = next?.cursor === undefined ? undefined : pointAt(reply, next.cursor)
  if (following === undefined || following === null || following === '') return undefined
  // Otherwise it would be the same page for ever.
  if (String(following) === cursor) throw odd(recipe)
  return String(following)
}

/** Only accounts with our names. */
function listedOf(recipe: Recipe, list: ListSpec, item: unknown, vars: Vars): Listed[] {
  if (typeof item !== 'object' || item === null) throw odd(recipe)
  const name = pointAt(item, list.name)
  const [ours] = accountsOf(recipe).listed(name)
  const ended = list.unless === undefined ? undefined : pointAt(item, list.unless)
  const hasEnded = ended !== undefined && ended !== null && ended !== false
  if (ours === undefined || hasEnded) return []
  const expiresAt = list.expires === undefined ? undefined : expiryOf(recipe, list.expires, item)
  const handle = { ...ours.handle, ...takeAll(recipe, list.handle, item, { ...vars, name }) }
  return [{ ...ours, handle, ...(expiresAt === undefined ? {} : { expiresAt }) }]
}

/** Epoch ms. Throws `unavailable` for an expiry of another form. */
export function expiryOf(recipe: Recipe, { at, as }: ExpirySpec, reply: unknown): number | undefined {
  const value = pointAt(reply, at)
  if (value === undefined || value === null || value === '') return undefined
  const ms =
    as === 'iso' || as === 'date' ? Date.parse(String(value)) : Number(value) * (as === 'seconds' ? 1000 : 1)
  if (!Number.isFinite(ms)) throw odd(recipe)
  return Math.floor(ms)
}
