import type { HttpUse, Place, Rule } from '../../domain/use.ts'
import { httpUse, segment } from '../uses.ts'
import type { Recipe } from './schema.ts'
import type { Grammar } from './scopes.ts'
import { fillText, namesIn, type Vars } from './template.ts'
import type { UsePlaceSpec, UseRuleSpec } from './use-schema.ts'

/** A list of rules as the interface carries it has no more. */
const MOST_RULES = 256

/** The uses of a recipe, with the fields of a backend and the parts of the scopes filled in. */
export function usesOf(
  recipe: Recipe,
  grammar: Pick<Grammar, 'partsIn'>,
): (config: Vars, scopes: readonly string[]) => readonly HttpUse[] {
  return (config, scopes) => {
    const { local, ca } = config
    const open = openFields(recipe, config)
    const granted = scopes.map(grammar.partsIn)
    return (recipe.uses ?? []).flatMap(({ name, origin = '{base_url}', places, allow, deny = [] }) => {
      if (!namesIn(origin).every((one) => one in open)) return []
      const base = fillText(origin, open)
      const allowed = filled(allow, open, granted).slice(0, MOST_RULES)
      if (allowed.length === 0) return []
      const site = { base, local: local === true, ...(typeof ca === 'string' ? { ca } : {}) }
      return httpUse(name, site, {
        places: places.map(placeOf),
        allow: allowed,
        deny: filled(deny, open, granted),
      })
    })
  }
}

function openFields({ fields }: Recipe, config: Vars): Vars {
  const entries = Object.entries(config).filter(([name]) => fields[name]?.secret !== true)
  return Object.fromEntries(entries)
}

function placeOf({ field, header, basic, query }: UsePlaceSpec): Place {
  const of = field === undefined ? {} : { field }
  if (header !== undefined) return { ...of, in: 'header', name: header.toLowerCase() }
  if (basic === true) return { ...of, in: 'basic' }
  return { ...of, in: 'query', name: query ?? '' }
}

/** `granted`: the parts of each scope. */
function filled(
  rules: readonly UseRuleSpec[],
  open: Vars,
  granted: readonly Readonly<Record<string, string>>[],
): readonly Rule[] {
  const found = new Map<string, Rule>()
  for (const { methods, paths, slashes, caseless, for: only = {} } of rules) {
    const more = { ...(slashes && { slashes }), ...(caseless && { caseless }) }
    for (const parts of granted) {
      if (!Object.entries(only).every(([part, values]) => values.includes(parts[part] ?? ''))) continue
      for (const template of paths) {
        if (!namesIn(template).every((name) => name in open || name in parts)) continue
        const path = pathOf(template, { ...open, ...parts }, slashes === true)
        const rule = { methods, path, ...more }
        found.set(JSON.stringify(rule), rule)
      }
    }
  }
  return [...found.values()]
}

/** A value stays what it is: `/` in it is one of the path, or with `slashes` a piece of its part. */
function pathOf(template: string, vars: Vars, slashes: boolean): string {
  return fillText(template, vars, (value) =>
    slashes ? segment(value) : value.split('/').map(segment).join('/'),
  )
}
