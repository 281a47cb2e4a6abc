import { type BackendError, unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import type { Kind, ScopeForm } from '../kind.ts'
import type { Recipe } from './schema.ts'
import type { Vars } from './template.ts'

type Config = Readonly<Record<string, unknown>>

const PART = /<([a-z][a-z0-9_]*)>/g
const DEFAULT_PATTERN = '[A-Za-z0-9._@+-]+'

export const partsOf = (form: string) => [...form.matchAll(PART)].map(([, name = '']) => name)

/** What a form of scopes, or of the items of a list field, matches; its named parts are the groups. */
export function formRegExp(form: string, { parts = {} }: Recipe['scopes']): RegExp {
  const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
  const groups = form.split(PART).map((piece, index) => {
    if (index % 2 === 0) return literal(piece)
    const { values, pattern = DEFAULT_PATTERN } = parts[piece] ?? {}
    return `(?<${piece}>${values === undefined ? pattern : Object.keys(values).map(literal).join('|')})`
  })
  return new RegExp(`^(?:${groups.join('')})$`, 'u')
}

export interface Grammar extends Pick<Kind['scopes'], 'valid' | 'gives' | 'forms' | 'help'> {
  /** The variables of granted scopes. Throws `unsupported` for what one credential cannot hold. */
  read(config: Config, scopes: readonly string[]): { readonly vars: Vars; readonly each: readonly Vars[] }
  /** The parts of a scope as its text has them, with the texts that its form sets. Empty for what is no scope. */
  partsIn(scope: string): Readonly<Record<string, string>>
  /** The variables of each place where credentials can be; one without variables if the recipe names none. */
  places(config: Config): readonly Vars[]
}

export function createGrammar(recipe: Recipe): Grammar {
  const { scopes } = recipe
  const forms = scopes.forms.map(({ form, sets }) => ({ matches: formRegExp(form, scopes), sets }))
  const placeForm = scopes.places === undefined ? undefined : recipe.fields[scopes.places]?.form
  const placeExp = placeForm === undefined ? undefined : formRegExp(placeForm, scopes)
  const placeParts = placeForm === undefined ? [] : partsOf(placeForm)

  function groupsOf(scope: string): Readonly<Record<string, string>> | undefined {
    if (!isScope(scope)) return undefined
    for (const { matches } of forms) {
      const found = matches.exec(scope)
      if (found !== null) return { ...found.groups }
    }
    return undefined
  }

  const places = (config: Config): readonly Vars[] => {
    if (placeExp === undefined || scopes.places === undefined) return [{}]
    const items = (config[scopes.places] ?? []) as readonly string[]
    return items.map((item) => ({ ...placeExp.exec(item)?.groups }))
  }
  const isPlace = (config: Config, groups: Vars) =>
    places(config).some((place) => placeParts.every((part) => place[part] === groups[part]))

  function varsOf(scope: string): Vars {
    const sets = forms.find(({ matches }) => matches.test(scope))?.sets
    const parts = Object.entries(groupsOf(scope) ?? {}).map(([part, value]) => {
      const sends = scopes.parts?.[part]?.values?.[value]?.sends
      return [part, sends ?? value] as const
    })
    return { ...Object.fromEntries(parts), ...sets }
  }

  return {
    valid: (scope) => groupsOf(scope) !== undefined,
    gives: (config, scope) => isPlace(config, groupsOf(scope) ?? {}),
    forms: recipe.scopes.forms.flatMap((form) => expandForm(form, scopes)),
    help: scopes.help,
    places,
    partsIn(scope) {
      const sets = Object.entries(forms.find(({ matches }) => matches.test(scope))?.sets ?? {})
      const texts = sets.filter((entry): entry is [string, string] => typeof entry[1] === 'string')
      return { ...Object.fromEntries(texts), ...groupsOf(scope) }
    },
    read(config, granted) {
      const most = scopes.most ?? 1
      const refuse = (message: string) => unsupported(message)
      if (granted.length === 0) throw refuse('A credential needs at least one scope here.')
      if (granted.length > most) {
        throw refuse(
          `A credential can have at most ${most} scope${most === 1 ? '' : 's'} here; request fewer.`,
        )
      }
      for (const scope of granted) {
        const groups = groupsOf(scope)
        if (groups === undefined) throw refuse(`A scope is not one of this backend. ${scopes.help}`)
        if (!isPlace(config, groups)) throw refuse('A scope names a place that is not one of this backend.')
      }
      const each = granted.map(varsOf)
      return { vars: most === 1 ? (each[0] ?? {}) : together(each, scopes.same ?? [], refuse), each }
    },
  }
}

/** The parts that all scopes agree in, and lists of the other ones. */
function together(
  each: readonly Vars[],
  same: readonly string[],
  refuse: (message: string) => BackendError,
): Vars {
  const names = [...new Set(each.flatMap(Object.keys))]
  return Object.fromEntries(
    names.map((name) => {
      // One scope may stand for several words of the upstream.
      const values = [...new Set(each.flatMap((vars) => vars[name]))]
      if (!same.includes(name)) return [name, values]
      if (values.length > 1) throw refuse(`The scopes of one credential must name the same ${name}.`)
      return [name, values[0]]
    }),
  )
}

/** A form once for each value of its listed parts: `<project>:<access>` becomes `<project>:read` and `<project>:write`. */
function expandForm({ form, gives }: ScopeForm, scopes: Recipe['scopes']): ScopeForm[] {
  const part = partsOf(form).find((name) => scopes.parts?.[name]?.values !== undefined)
  if (part === undefined) return [{ form, gives }]
  return Object.entries(scopes.parts?.[part]?.values ?? {}).flatMap(([value, said]) =>
    expandForm(
      { form: form.replace(`<${part}>`, value), gives: gives.replace(`<${part}>`, said.gives) },
      scopes,
    ),
  )
}
