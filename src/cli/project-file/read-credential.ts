import { isObject } from '../../domain/formats/json.ts'
import type { Path } from '../../files/yaml-file.ts'
import { faultOfVariable } from '../frame/variable-names.ts'
import type { RequestedCredential, RequestedFile } from './requested-credential.ts'
import type { Faults, Shape } from './shape.ts'
import { parseTemplate, type Template } from './template.ts'

const FIELDS = ['backend', 'ttl', 'scopes', 'params', 'metadata', 'env', 'files']
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const DURATION = /^(?:\d+(?:ms|[wdhms]))+$/
const FILE_NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/
const NOTHING: Template = { parts: [] }

/** Adds every mistake to `faults`; with any, the result must not be used. */
export function readCredential(
  faults: Faults,
  path: Path,
  name: string,
  given: unknown,
): RequestedCredential {
  if (!NAME.test(name)) faults.add(path, 'a name consists of letters, digits, ".", "_" and "-"', 'key')
  // `orders-db:` alone requests a credential of that backend with all defaults.
  const value = given === null ? {} : given
  if (!isObject(value)) {
    faults.add(path, `${name} must hold "key: value" lines`)
    return { name, request: { backend: name }, isSpread: true, env: [], files: [] }
  }
  faults.unknownKeys(path, value, FIELDS)
  const env = readEnv(faults, [...path, 'env'], value['env'])
  const files = readFiles(faults, [...path, 'files'], value['files'])
  return {
    name,
    request: readRequest(faults, path, name, value),
    isSpread: value['env'] === undefined && value['files'] === undefined,
    env,
    files,
  }
}

function readRequest(faults: Faults, path: Path, name: string, value: Shape) {
  const { backend = name, ttl, scopes, params, metadata } = value
  if (typeof backend !== 'string' || !NAME.test(backend))
    faults.add([...path, 'backend'], 'backend must be the name of a backend')
  if (ttl !== undefined && (typeof ttl !== 'string' || !DURATION.test(ttl)))
    faults.add([...path, 'ttl'], 'ttl must be a duration such as 10m or 1h30m')
  if (scopes !== undefined && !isTexts(scopes))
    faults.add([...path, 'scopes'], 'scopes must be a list of words')
  for (const [key, one] of Object.entries({ params, metadata }))
    if (one !== undefined && !isObject(one)) faults.add([...path, key], `${key} must hold "key: value" lines`)
  return {
    backend: String(backend),
    ttl: ttl === undefined ? undefined : String(ttl),
    scopes: isTexts(scopes) ? [...scopes] : undefined,
    params: isObject(params) ? params : undefined,
    metadata: isObject(metadata) ? metadata : undefined,
  }
}

function readEnv(faults: Faults, path: Path, value: unknown): RequestedCredential['env'] {
  return variables(faults, path, value).map(([variable, form]) => ({
    variable,
    value: readTemplate(faults, [...path, variable], form),
  }))
}

function readFiles(faults: Faults, path: Path, value: unknown): RequestedFile[] {
  const names = new Set<string>()
  return variables(faults, path, value).map(([variable, form]) => {
    const at = [...path, variable]
    const { name = variable, content } = isObject(form) ? form : { content: form }
    if (isObject(form)) faults.unknownKeys(at, form, ['name', 'content'])
    if (names.has(String(name))) faults.add(at, `two files are named ${String(name)}`)
    names.add(String(name))
    if (typeof name !== 'string' || !FILE_NAME.test(name))
      faults.add([...at, 'name'], 'name must be a plain file name, such as key.json')
    return {
      variable,
      fileName: String(name),
      content: readTemplate(faults, isObject(form) ? [...at, 'content'] : at, content),
    }
  })
}

function variables(faults: Faults, path: Path, value: unknown): [string, unknown][] {
  if (value === undefined) return []
  if (!isObject(value) || Object.keys(value).length === 0) {
    faults.add(path, `${path.at(-1)} must hold "VARIABLE: field" lines`)
    return []
  }
  for (const name of Object.keys(value)) {
    const fault = faultOfVariable(name)
    if (fault !== undefined)
      faults.add([...path, name], `${JSON.stringify(name.slice(0, 60))} ${fault}`, 'key')
  }
  return Object.entries(value)
}

function readTemplate(faults: Faults, path: Path, value: unknown): Template {
  const template = typeof value === 'string' ? parseTemplate(value) : undefined
  if (template === undefined)
    faults.add(path, 'must be a field, such as password, or text with fields: "{{host}}:{{port}}"')
  return template ?? NOTHING
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== '')
