import type { ProxyWish } from './proxy-wish.ts'
import type { Project } from './read.ts'
import type { RequestedCredential } from './requested-credential.ts'
import type { Template } from './template.ts'

/** One credential as lines; each says one thing that the file asks for. */
interface Description {
  readonly name: string
  readonly lines: readonly string[]
}

/** What a project file asks for, in a form that no layout of the file can hide or imitate. */
export function describeProject(project: Project): string {
  return partsOf(project)
    .flatMap(({ name, lines }) => [name, ...indented(lines)])
    .join('\n')
}

/** The same, each line that is new marked with `+`, and what was there before with `-`. */
export function describeChange(before: Project, now: Project): string {
  const [former, latter] = [partsOf(before), partsOf(now)]
  const old = new Map(former.map(({ name, lines }) => [name, lines]))
  const names = new Set(latter.map(({ name }) => name))
  const kept = latter.flatMap(({ name, lines }) => {
    const known = old.get(name)
    if (known === undefined) return marked('+', [name, ...indented(lines)])
    const removed = known.filter((line) => !lines.includes(line))
    return [
      `  ${name}`,
      ...marked('-', indented(removed)),
      ...indented(lines).map((line, at) => `${known.includes(lines[at] ?? '') ? ' ' : '+'} ${line}`),
    ]
  })
  const gone = former.filter(({ name }) => !names.has(name))
  return [...kept, ...gone.flatMap(({ name, lines }) => marked('-', [name, ...indented(lines)]))].join('\n')
}

/** No credential has the name `[proxy]`. */
function partsOf({ credentials, proxy }: Project): Description[] {
  return [...credentials.map(describe), ...(proxy === undefined ? [] : [describeProxy(proxy)])]
}

function describeProxy({ others, tunnel, onMisuse, idleMs }: ProxyWish): Description {
  return {
    name: '[proxy]',
    lines: [
      'the command gets placeholders, and a proxy holds the secrets',
      ...(others === undefined ? [] : [`others: ${others}`]),
      ...(tunnel === undefined ? [] : [`tunnel: ${JSON.stringify(tunnel)}`]),
      ...(onMisuse === undefined ? [] : [`on_misuse: ${onMisuse}`]),
      ...(idleMs === undefined ? [] : [`idle_timeout: ${idleMs / 1_000}s`]),
    ],
  }
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
