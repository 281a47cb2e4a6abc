import { ruleFault } from '../../domain/use-rules.ts'
import type { Path, Report } from './recipe-fault.ts'
import type { Recipe } from './schema.ts'
import { partsOf } from './scopes.ts'
import { hasStrayBrace, namesIn } from './template.ts'
import type { UsePlaceSpec, UseRuleSpec, UseSpec } from './use-schema.ts'

/** Of a list of rules that may not lose one; scopes have no part in these. */
const MOST_DENIED = 200

/** What a schema cannot say of `uses`. */
export function checkUses(recipe: Recipe, report: Report): void {
  const { uses = [] } = recipe
  for (const [index, use] of uses.entries()) {
    const at = ['uses', index]
    if (uses.findIndex(({ name }) => name === use.name) < index)
      report([...at, 'name'], 'is the name of another use')
    checkOrigin(recipe, use, at, report)
    for (const [number, place] of use.places.entries())
      checkPlace(recipe, place, [...at, 'places', number], report)
    for (const list of ['allow', 'deny'] as const)
      for (const [number, rule] of (use[list] ?? []).entries())
        checkRule(recipe, rule, list, [...at, list, number], report)
    if ((use.deny ?? []).flatMap(({ paths }) => paths).length > MOST_DENIED)
      report([...at, 'deny'], `has more than ${MOST_DENIED} paths`)
  }
}

/** Fields that a use may show. */
const isOpen = ({ fields }: Recipe, name: string) =>
  Object.hasOwn(fields, name) && fields[name]?.secret !== true && fields[name]?.type !== 'list'

function checkOrigin(recipe: Recipe, { origin = '{base_url}' }: UseSpec, at: Path, report: Report): void {
  const path = [...at, 'origin']
  if (hasStrayBrace(origin)) report(path, 'has a "{" or "}" that belongs to no variable')
  for (const name of namesIn(origin))
    if (name !== 'base_url' && !isOpen(recipe, name)) report(path, `there is no variable {${name}} here`)
  const sample = origin.replace(/\{base_url\}/g, 'https://example.com').replace(/\{\w+\}/g, 'app')
  if (!URL.canParse(sample) || !/^https:\/\/[^/?#@]+(\/[^?#]*)?$/.test(sample))
    report(path, 'must be the address of an upstream, such as https://registry.example.com')
}

function checkPlace({ issue }: Recipe, place: UsePlaceSpec, at: Path, report: Report): void {
  const { field, ...where } = place
  if (Object.keys(where).length !== 1) report(at, 'needs exactly one of "header", "basic" and "query"')
  const known = Object.keys(issue.fields ?? {})
  if (issue.secret !== undefined && field !== undefined)
    report([...at, 'field'], 'is for credentials with "fields"')
  else if (issue.secret === undefined && !known.includes(field ?? ''))
    report([...at, 'field'], `must be one of ${known.join(', ')}`)
}

function checkRule(
  recipe: Recipe,
  { methods, paths, slashes, for: only = {} }: UseRuleSpec,
  list: 'allow' | 'deny',
  at: Path,
  report: Report,
): void {
  const { scopes } = recipe
  const parts = new Set(
    scopes.forms.flatMap(({ form, sets }) => [...partsOf(form), ...Object.keys(sets ?? {})]),
  )
  for (const [part, values] of Object.entries(only)) {
    const known = Object.keys(scopes.parts?.[part]?.values ?? {})
    const set = scopes.forms.flatMap(({ sets }) => sets?.[part] ?? [])
    if (!parts.has(part)) report([...at, 'for', part], 'is not a part of the forms')
    else if (known.length > 0 && !values.every((value) => known.includes(value) || set.includes(value)))
      report([...at, 'for', part], `must have values among ${known.join(', ')}`)
  }
  for (const [index, path] of paths.entries()) {
    const where = [...at, 'paths', index]
    if (hasStrayBrace(path)) report(where, 'has a "{" or "}" that belongs to no variable')
    for (const name of namesIn(path)) {
      if (!parts.has(name) && !isOpen(recipe, name)) report(where, `there is no variable {${name}} here`)
      else if (list === 'deny' && parts.has(name))
        report(where, `{${name}} is a part of the scope: deny a path whatever the scopes are`)
    }
    const filled = path.replace(/\{\w+\}/g, 'app')
    const fault = ruleFault({ methods, path: filled, ...(slashes === true ? { slashes } : {}) })
    if (fault !== undefined) report(where, fault.replace(/^\.path /, ''))
  }
}
