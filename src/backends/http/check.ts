import { Errors } from 'typebox/value'
import { parseDuration } from '../../domain/duration.ts'
import { isLinearPattern } from '../../domain/formats/pattern.ts'
import { faultsOf } from '../../domain/formats/schema-faults.ts'
import { isScope } from '../../domain/scope.ts'
import { checkUses } from './check-uses.ts'
import type { Path, RecipeFault, Report } from './recipe-fault.ts'
import { type Recipe, RecipeSchema } from './schema.ts'
import { createGrammar, partsOf } from './scopes.ts'
import { hasStrayBrace, isPointer, namesIn } from './template.ts'
import { forEachTemplate, type Place } from './templates-in.ts'

/** Variables of every request of `issue`, besides those of the configuration and the scopes. */
export const ISSUE_VARIABLES =
  'name credential_id agent_id agent_name ttl_seconds expires_iso expires_iso_seconds expires_seconds expires_ms expires_date expires_date_anywhere'.split(
    ' ',
  )
const RESERVED = new Set([
  ...ISSUE_VARIABLES,
  'after',
  'page',
  'identity',
  'secret',
  'ca',
  'local',
  'local_user',
  'base_url',
])
const NAME = /^[a-z][a-z0-9_]{0,39}$/
/** Of the form of every credential's name. */
const SAMPLE = '0123456789abcdefghjkmnpqrs'

/** Every fault of a recipe. None: `kindOf` makes a kind of it. */
export function findRecipeFaults(value: unknown): readonly RecipeFault[] {
  const faults: RecipeFault[] = shapeFaults(value)
  if (faults.length > 0) return faults
  const recipe = value as Recipe
  const report: Report = (path, message) => faults.push({ path, message })
  checkNames(recipe, report)
  if (faults.length > 0) return faults
  checkFields(recipe, report)
  checkScopes(recipe, report)
  checkParts(recipe, report)
  if (faults.length === 0) {
    checkTemplates(recipe, report)
    checkUses(recipe, report)
  }
  return faults
}

/** What a text must be, by its key; elsewhere it is a pointer or a name. */
const FORMS: Readonly<Record<string, string>> = {
  request: 'a method and a path, such as `POST /v1/keys/{id}`; a query goes into "query"',
  type: 'small letters, digits and "-"',
  default: 'an https URL',
  example: 'an https URL',
  places: 'the name of a field',
}
const formAt = (path: Path) =>
  path.includes('source') ? 'an https URL' : 'a JSON Pointer, such as /data/key'

function shapeFaults(value: unknown): RecipeFault[] {
  const seen = new Set<string>()
  return faultsOf(Errors(RecipeSchema, value)).flatMap(
    ({ keyword, path, reason, choices, fields }): RecipeFault[] => {
      const place = `${keyword} ${path.join('/')}`
      if (seen.has(place)) return []
      seen.add(place)
      if (keyword === 'additionalProperties')
        return fields.map((key) => ({ path: [...path, key], message: 'is not known here' }))
      if (keyword === 'enum') return [{ path, message: `must be one of ${choices.join(', ')}` }]
      if (keyword === 'pattern')
        return [{ path, message: `must be ${FORMS[String(path.at(-1))] ?? formAt(path)}` }]
      if (keyword === 'required')
        return [{ path, message: reason.replace('must have required properties', 'lacks') }]
      return [{ path, message: reason }]
    },
  )
}

/** Names of fields, parts and variables, whose form decides what a template means. */
function checkNames({ fields, scopes, issue, list }: Recipe, report: Report): void {
  const places: [Path, object | undefined][] = [
    [['fields'], fields],
    [['scopes', 'parts'], scopes.parts],
    [['issue', 'fields'], issue.fields],
    [['issue', 'handle'], issue.handle],
    [['list', 'handle'], list?.handle],
    ...issue.requests.map(({ take }, index): [Path, object | undefined] => [
      ['issue', 'requests', index, 'take'],
      take,
    ]),
    ...scopes.forms.map(({ sets }, index): [Path, object | undefined] => [
      ['scopes', 'forms', index, 'sets'],
      sets,
    ]),
  ]
  for (const [path, named] of places) {
    for (const name of Object.keys(named ?? {})) {
      if (!NAME.test(name)) report([...path, name], 'is not a name: write it in small letters, digits and _')
      else if (RESERVED.has(name) && path.join('.') !== 'issue.fields')
        report([...path, name], 'is a name that Mayfly uses itself')
    }
  }
}

function checkFields({ fields, base_url: base }: Recipe, report: Report): void {
  if ((base.default === undefined) === (base.example === undefined)) {
    report(['base_url'], 'needs either "default" or "example"')
  }
  for (const [name, field] of Object.entries(fields)) {
    const at = ['fields', name]
    const isNeeded = field.optional !== true && field.default === undefined
    if (isNeeded && field.example === undefined) report(at, 'needs an "example", because it is required')
    if (field.form !== undefined && field.type !== 'list') report([...at, 'form'], 'is for lists')
    if (field.choices !== undefined && field.type !== undefined)
      report([...at, 'type'], 'has no meaning beside "choices"')
    if (field.secret === true && (field.type ?? 'text') !== 'text')
      report([...at, 'type'], 'of a secret must be text')
    if (field.pattern !== undefined) requireRegExp(field.pattern, [...at, 'pattern'], report)
  }
}

/** A text that an agent sends must not hold up the server. */
const COMPLEX =
  'is too complex: it may have one repetition (* + {1,9}), of no group, with little behind it, and few alternatives'
/** Parts of one form without listed values: a scope of 256 characters has about three million ways to be split into so many. */
const MOST_OPEN_PARTS = 3

function requireRegExp(pattern: string, path: Path, report: Report): boolean {
  try {
    new RegExp(`^(?:${pattern})$`, 'u')
  } catch {
    report(path, 'is not a regular expression')
    return false
  }
  if (isLinearPattern(`^(?:${pattern})$`)) return true
  report(path, COMPLEX)
  return false
}

/** The variables of one form. */
const variablesOfForm = ({ form, sets }: Recipe['scopes']['forms'][number]) =>
  [...partsOf(form), ...Object.keys(sets ?? {})].sort()

function checkScopes(recipe: Recipe, report: Report): void {
  const { scopes, fields } = recipe
  const { forms, parts = {}, places, same = [] } = scopes
  let isSound = true
  for (const [name, { pattern }] of Object.entries(parts)) {
    if (pattern !== undefined)
      isSound &&= requireRegExp(pattern, ['scopes', 'parts', name, 'pattern'], report)
    if (Object.hasOwn(fields, name)) report(['scopes', 'parts', name], 'is also the name of a field')
  }
  if (!isSound) return
  const known = variablesOfForm(forms[0] ?? { form: '', gives: '' })
  const grammar = createGrammar(recipe)
  for (const [index, form] of forms.entries()) {
    const at = ['scopes', 'forms', index, 'form']
    const own = partsOf(form.form)
    if (new Set(own).size < own.length) report(at, 'names a part twice')
    if (own.filter((part) => parts[part]?.values === undefined).length > MOST_OPEN_PARTS)
      report(at, `names more than ${MOST_OPEN_PARTS} parts without "values"`)
    if (own.some((part) => Object.hasOwn(fields, part))) report(at, 'names a part like a field')
    if (variablesOfForm(form).join() !== known.join()) {
      report(
        at,
        `must give the variables of the first form: ${known.join(', ')} ("sets" gives what is not in its text)`,
      )
    }
  }
  for (const { form } of grammar.forms) {
    const example = form.replace(/<\w+>/g, 'app')
    if (!isScope(example) || !grammar.valid(example))
      report(['scopes', 'forms'], `"${form}" is not a scope with "app" for each name`)
  }
  for (const [index, part] of same.entries())
    if (!known.includes(part)) report(['scopes', 'same', index], 'is not a part of the forms')
  const placeForm = places === undefined ? undefined : fields[places]?.form
  // Otherwise a change would leave accounts behind at a place where nobody looks for them any more.
  if (places !== undefined && placeForm !== undefined && fields[places]?.upstream !== true) {
    report(['fields', places], 'needs "upstream: true", because "places" names it')
  }
  if (places !== undefined && (placeForm === undefined || fields[places]?.optional === true)) {
    report(['scopes', 'places'], 'must be a required field of the type list with a "form"')
  }
  if (placeForm !== undefined && partsOf(placeForm).some((part) => !known.includes(part))) {
    report(['scopes', 'places'], 'has a form with a part that no scope has')
  }
}

function checkParts(recipe: Recipe, report: Report): void {
  const { auth, issue, revoke, list, limits, naming, check } = recipe
  if (Object.keys(auth).length !== 1) report(['auth'], 'needs exactly one way to log in')
  if ((issue.secret === undefined) === (issue.fields === undefined))
    report(['issue'], 'needs either "secret" or "fields"')
  for (const key of ['min_ttl', 'max_ttl'] as const) {
    const text = limits?.[key]
    if (text !== undefined && parseDuration(text) === undefined)
      report(['limits', key], 'is not a duration: write it as 45s, 10m or 90d')
  }
  if (auth.jwt !== undefined && parseDuration(auth.jwt.lifetime) === undefined)
    report(['auth', 'jwt', 'lifetime'], 'is not a duration')
  const sample = `${naming?.prefix ?? 'mf_'}${SAMPLE}`
  if (naming?.max_length !== undefined && naming.max_length < sample.length) {
    report(['naming', 'max_length'], `must be at least ${sample.length}: names are as long`)
  }
  if (naming?.pattern !== undefined && requireRegExp(naming.pattern, ['naming', 'pattern'], report)) {
    if (!new RegExp(`^(?:${naming.pattern})$`, 'u').test(sample))
      report(['naming', 'pattern'], `does not match names such as ${sample}`)
  }
  for (const name of Object.keys(recipe.environment ?? {})) {
    if (!/^[A-Z][A-Z0-9_]*$/.test(name))
      report(['environment', name], 'is not a variable: write it in capital letters, digits and _')
  }
  if (list === undefined && check === undefined)
    report([], 'needs "list" or "check", so that a configuration can be tried')
  if (revoke === undefined && issue.expires === undefined)
    report([], 'needs "revoke", or "expires" in "issue"')
  if (
    list !== undefined &&
    Object.keys(list.handle ?? {})
      .sort()
      .join() !==
      Object.keys(issue.handle ?? {})
        .sort()
        .join()
  ) {
    report(['list'], 'must have the same names in "handle" as "issue"')
  }
}

/** Which variables each template may use, and how. */
function checkTemplates(recipe: Recipe, report: Report): void {
  const { fields, scopes, issue } = recipe
  const open = [...Object.keys(fields).filter((name) => fields[name]?.secret !== true), 'base_url']
  const granted = variablesOfForm(scopes.forms[0] ?? { form: '', gives: '' })
  const placeForm = scopes.places === undefined ? undefined : fields[scopes.places]?.form
  const places = placeForm === undefined ? [] : partsOf(placeForm)
  const results = issue.secret === undefined ? Object.keys(issue.fields ?? {}) : ['secret']
  const known: Record<Place['within'], readonly string[]> = {
    auth: [...Object.keys(fields), 'base_url'],
    issue: [...open, ...granted, ...ISSUE_VARIABLES],
    revoke: [...open, 'name', ...Object.keys(issue.handle ?? {})],
    list: [...open, ...places, 'name', 'after', 'page'],
    check: [...open, ...places],
    headers: open,
    environment: results,
  }
  const lists = (scopes.most ?? 1) > 1 ? granted.filter((name) => !(scopes.same ?? []).includes(name)) : []
  forEachTemplate(recipe, ({ within, path, text, how, taken = [] }) => {
    if (hasStrayBrace(text)) report(path, 'has a "{" or "}" that belongs to no variable')
    for (const name of namesIn(text)) {
      const isField = Object.hasOwn(fields, name)
      if (fields[name]?.secret === true && within !== 'auth' && within !== 'environment')
        report(path, `{${name}} is secret: only "auth" may use it`)
      else if (!known[within].includes(name) && !taken.includes(name))
        report(path, `there is no variable {${name}} here`)
      else if (isField && fields[name]?.type === 'list' && how !== 'whole')
        report(path, `{${name}} is a list; it must be a whole JSON value`)
      else if (within === 'issue' && lists.includes(name) && how === 'text') {
        report(path, `{${name}} is a list here, one for each scope; use it as a whole JSON value or in $each`)
      }
    }
    if (within === 'issue' && isPointer(text) && hasStrayBrace(text)) report(path, 'is not a JSON Pointer')
  })
}
