import type { Claims, Platform } from './identity.ts'

/**
 * The scopes that the claims of an agent give it on this platform: those of each row whose value is the claim, or one member of
 * it where it is a list. Case by case; numbers and booleans count as their text.
 */
export function mappedScopes({ scopes }: Pick<Platform, 'scopes'>, claims: Claims): string[] {
  const given = scopes.filter(({ claim, value }) => membersOf(valueAt(claims, claim)).includes(value))
  return [...new Set(given.flatMap((row) => row.scopes))]
}

/** A claim by its whole name, or else the part of one, as `realm_access/roles`. Only what the token has of its own. */
function valueAt(claims: unknown, path: string): unknown {
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return undefined
  if (Object.hasOwn(claims, path)) return (claims as Claims)[path]
  const end = path.indexOf('/')
  const head = path.slice(0, end)
  if (end === -1 || !Object.hasOwn(claims, head)) return undefined
  return valueAt((claims as Claims)[head], path.slice(end + 1))
}

function membersOf(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).flatMap((one: unknown) =>
    typeof one === 'string' || typeof one === 'number' || typeof one === 'boolean' ? [String(one)] : [],
  )
}
