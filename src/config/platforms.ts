import type { Static } from 'typebox'
import { type InvalidValue, quote } from '../domain/fault.ts'
import type { Platform } from '../domain/identity/identity.ts'
import { checkEntries } from './check-entries.ts'
import { checkScopes } from './identities.ts'
import type { PlatformSchema } from './identity-schema.ts'
import { type CheckedKeys, checkKeys, checkName, issuerFault } from './key-source.ts'

export type PlatformEntry = Static<typeof PlatformSchema>

/** An entry that is well-formed. Its authorities are still in a file. */
export interface CheckedPlatform extends Omit<Platform, 'keys'> {
  readonly keys: CheckedKeys
}

/** The names of agents begin with it. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** Checks all entries and reports every fault with its place. Entries with faults are left out. */
export function checkPlatforms(
  entries: readonly PlatformEntry[],
  report: (fault: InvalidValue) => void,
): CheckedPlatform[] {
  const [names, registered] = [new Set<string>(), new Set<string>()]
  return checkEntries(entries, report, (entry, note): CheckedPlatform => {
    checkName(entry.name, names, NAME, 'platform', note)
    const fault = issuerFault(entry.issuer, entry.local ?? false)
    if (fault !== undefined) note(['issuer'], fault)
    // At most one registration may match a token.
    const key = JSON.stringify([entry.issuer, entry.audience])
    if (registered.has(key)) note(['issuer'], 'is already the issuer of another platform with this audience')
    registered.add(key)
    const keys = checkKeys(entry, note)
    const scopes = entry.scopes ?? []
    scopes.forEach((one, place) => {
      checkScopes(one.scopes, ['scopes', place, 'scopes'], note)
      const first = scopes.findIndex(({ claim, value }) => claim === one.claim && value === one.value)
      if (first !== place) note(['scopes', place], `${quote(one.value)} is already in the list`)
    })
    const { name, issuer, audience } = entry
    return { name, issuer, audience, keys, scopes }
  })
}
