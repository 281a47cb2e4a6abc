import { reservedBy } from '../domain/identity/reserved-names.ts'
import { Problem } from '../domain/problems.ts'
import type { Core } from './context.ts'

/** Why nobody but the agents of an entry may have this name; undefined: anybody may. */
export function heldByEntry({ identities }: Pick<Core, 'identities'>, name: string): string | undefined {
  const entry = reservedBy(identities.trusted(), name)
  return entry === undefined
    ? undefined
    : `The entry "${entry}" of "identities" or "platforms" gives this name to its agents.`
}

/** Throws `conflict` for a name that an entry gives. */
export function requireUnheld(core: Pick<Core, 'identities'>, name: string): void {
  const message = heldByEntry(core, name)
  if (message !== undefined) throw new Problem('conflict', { message })
}
