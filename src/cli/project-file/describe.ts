import type { RequestedCredential } from './requested-credential.ts'
import type { Template } from './template.ts'

/** One credential as lines; each says one thing that the file asks for. */
interface Description {
  readonly name: string
  readonly lines: readonly string[]
}

/** What a project file asks for, in a form that no layout of the file can hide or imitate. */
export function describeProject(requested: readonly RequestedCredential[]): string {
  return requested
    .map(describe)
    .flatMap(({ name, lines }) => [name, ...indented(lines)])
    .join('\n')
}

/** The same, each line that is new marked with `+`, and what was there before with `-`. */
export function describeChange(
  before: readonly RequestedCredential[],
  now: readonly RequestedCredential[],
): string {
  const old = new Map(before.map((one) => [one.name, describe(one).lines]))
  const names = new Set(now.map(({ name }) => name))
  const kept = now.map(describe).flatMap(({ name, lines }) => {
    const known = old.get(name)
    if (known === undefined) return marked('+', [name, ...indented(lines)])
    const removed = known.filter((line) => !lines.includes(line))
    return [
      `  ${name}`,
      ...marked('-', indented(removed)),
      ...indented(lines).map((line, at) => `${known.includes(lines[at] ?? '') ? ' ' : '+'} ${line}`),
    ]
  })
  const gone = before.filter(({ name }) => !names.has(name)).map(describe)
  return [...kept, ...gone.flatMap(({ name, lines }) => marked('-', [name, ...indented(lines)]))].join('\n')
}

function describe({ name, request, isSpread, env, files }: RequestedCredential): Description {
  const { backend, ttl, scopes, params, metadata } = request
  return {
    name,
    lines: [
      `backend: ${backend}`,
      ...(ttl === undefined ? [] : [`ttl: ${ttl}`]),
      ...(scopes === undefined ? [] : [`scopes: ${JSON.stringify(scopes)}`]),
      ...(params === undefined ? [] : [`params: ${JSON.stringify(params)}`]),
      ...(metadata === undefined ? [] : [`metadata: ${JSON.stringify(metadata)}`]),
      ...(isSpread ? ['env: all fields, and the variables of its kind'] : []),
      ...env.map(({ variable, value }) => `env ${variable}: ${textOf(value)}`),
      ...files.map(
        ({ variable, fileName, content }) => `file ${variable}: ${fileName} with ${textOf(content)}`,
      ),
    ],
  }
}

/** On one line: a line break in a text must not look like the next line of this list. */
function textOf({ parts }: Template): string {
  const [first] = parts
  if (parts.length === 1 && first !== undefined && 'field' in first) return first.field
  return JSON.stringify(parts.map((part) => ('text' in part ? part.text : `{{${part.field}}}`)).join(''))
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`)
const marked = (mark: string, lines: readonly string[]) => lines.map((line) => `${mark} ${line}`)
