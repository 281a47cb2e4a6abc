import type { HttpUse, Place, Rule, Use, UseRules } from './use.ts'

/**
 * What a kind says of the use of a credential, with what an administrator named on the backend. A use of theirs replaces that of
 * the kind with the same name, and each of their rules is marked: `named` rules are looked at before those of the kind.
 */
export function mergeUses(kindUses: readonly Use[], rules: UseRules | null): Use[] {
  if (rules === null) return [...kindUses]
  const own = (rules.uses ?? []).map(markAll)
  const replaced = new Set(own.map(({ name }) => name))
  const all = [...kindUses.filter(({ name }) => !replaced.has(name)), ...own]
  return all.map((use) => (use.protocol === 'http' ? withRules(use, rules) : use))
}

/** The names that rules may name. */
export function namesOfUses(uses: readonly Use[]): string[] {
  return uses.filter(({ protocol }) => protocol === 'http').map(({ name }) => name)
}

function markAll(use: HttpUse): HttpUse {
  return { ...use, allow: use.allow.map(mark), deny: use.deny.map(mark) }
}

/** `use` chose the uses of a rule, and is no part of it any more. */
function mark({ use: _use, ...rule }: Rule & { readonly use?: string }): Rule {
  return { ...rule, named: true }
}

function withRules(use: HttpUse, { allow = [], deny = [], services = [] }: UseRules): HttpUse {
  const isMeant = (rule: { readonly use?: string }) => rule.use === undefined || rule.use === use.name
  return {
    ...use,
    places: services.length === 0 ? use.places : use.places.map((place) => permit(place, services)),
    allow: [...allow.filter(isMeant).map(mark), ...use.allow],
    deny: [...deny.filter(isMeant).map(mark), ...use.deny],
  }
}

/** An empty list of services of the kind would permit none, an absent one all that are not denied. */
function permit(place: Place, services: readonly string[]): Place {
  if (place.in !== 'sigv4') return place
  const { allow, deny } = place
  return {
    ...place,
    ...(allow === undefined ? {} : { allow: [...new Set([...allow, ...services])] }),
    deny: deny.filter((service) => !services.includes(service)),
  }
}
