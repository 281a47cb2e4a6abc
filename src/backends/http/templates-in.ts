import type { Recipe, RecipeRequest } from './schema.ts'
import { isPointer } from './template.ts'

/** One template of a recipe. */
export interface Place {
  readonly within: 'auth' | 'issue' | 'revoke' | 'list' | 'check' | 'headers' | 'environment'
  readonly path: readonly (string | number)[]
  readonly text: string
  /** `whole`: it is one JSON value; `each`: it is filled in once for each scope. */
  readonly how: 'text' | 'whole' | 'each'
  /** Variables that earlier replies gave. */
  readonly taken?: readonly string[]
}

type Visit = (place: Place) => void

/** Calls `visit` for every template, with where it stands. */
export function forEachTemplate(recipe: Recipe, visit: Visit): void {
  const { auth, issue, revoke, list, check = [], identity, headers = {}, environment = {} } = recipe
  visitJson({ within: 'auth', path: ['auth'] }, withoutPointers(auth), visit)
  visitJson({ within: 'headers', path: ['headers'] }, headers, visit)
  const taken: string[] = []
  for (const [index, request] of issue.requests.entries()) {
    const path = ['issue', 'requests', index]
    visitRequest({ within: 'issue', path, taken: [...taken] }, request, visit)
    visitTaken({ within: 'issue', path: [...path, 'take'], taken: [...taken] }, request.take, visit)
    taken.push(...Object.keys(request.take ?? {}))
  }
  for (const part of ['fields', 'handle', 'facts'] as const)
    visitTaken({ within: 'issue', path: ['issue', part], taken }, issue[part], visit)
  if (revoke !== undefined) visitRequest({ within: 'revoke', path: ['revoke'] }, revoke, visit)
  if (list !== undefined) {
    visitRequest({ within: 'list', path: ['list'] }, list, visit)
    visitTaken({ within: 'list', path: ['list', 'handle'] }, list.handle, visit)
  }
  for (const [index, request] of check.entries())
    visitRequest({ within: 'check', path: ['check', index] }, request, visit)
  if (identity !== undefined) visitRequest({ within: 'check', path: ['identity'] }, identity, visit)
  for (const [name, text] of Object.entries(environment))
    visit({ within: 'environment', path: ['environment', name], text, how: 'text' })
}

type At = Pick<Place, 'within' | 'path' | 'taken'>

function visitRequest(at: At, { request, query, headers, form, json }: RecipeRequest, visit: Visit): void {
  visit({ ...at, path: [...at.path, 'request'], text: request, how: 'text' })
  for (const [part, pairs] of Object.entries({ query, headers, form }))
    for (const [name, text] of Object.entries(pairs ?? {}))
      visit({ ...at, path: [...at.path, part, name], text, how: 'text' })
  visitJson({ ...at, path: [...at.path, 'json'] }, json, visit)
}

function visitTaken(at: At, taken: Readonly<Record<string, string>> | undefined, visit: Visit): void {
  for (const [name, text] of Object.entries(taken ?? {}))
    if (!isPointer(text)) visit({ ...at, path: [...at.path, name], text, how: 'text' })
}

function visitJson(at: At, value: unknown, visit: Visit, how: Place['how'] = 'whole'): void {
  if (typeof value === 'string') {
    visit({ ...at, text: value, how: how === 'whole' && !/^\{\w+\}$/.test(value) ? 'text' : how })
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      const path = [...at.path, Array.isArray(value) ? Number(key) : key]
      if (key === '$each') visitJson({ ...at, path }, inner, visit, 'each')
      else if (key !== '$join') {
        if (!Array.isArray(value)) visit({ ...at, path, text: key, how: how === 'each' ? 'each' : 'text' })
        visitJson({ ...at, path }, inner, visit, how)
      }
    }
  }
}

/** Of the ways to log in, what is a template. */
function withoutPointers({ login, jwt, ...rest }: Recipe['auth']): object {
  const { token: _, expires_in: __, ...request } = login ?? {}
  const { lifetime: ___, algorithm: ____, ...signed } = jwt ?? {}
  return {
    ...rest,
    ...(login === undefined ? {} : { login: request }),
    ...(jwt === undefined ? {} : { jwt: signed }),
  }
}
