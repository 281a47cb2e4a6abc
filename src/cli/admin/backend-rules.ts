import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Client } from '../../client/client.ts'
import type { Backend, CreateBackend, Kind, UseRules } from '../../client/wire.ts'
import { isObject, parseJson } from '../../domain/formats/json.ts'
import { usage } from '../frame/failure.ts'
import { many, off, text, type ValuesOf } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { readStdin } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'

/** The options of backends of every kind. */
export const RULE_OPTIONS = {
  config: text('<file>', 'configuration as JSON; - reads standard input; flags override it'),
  defaultTtl: text('<duration>', 'lifetime of a credential if the request names none'),
  maxTtl: text('<duration>', 'longest lifetime of a credential'),
  allowScope: many('<scope>', 'allow only this scope; may be repeated', { values: 'scopes' }),
  description: text('<text>', 'shown to agents that may use it'),
  rate: text('<rate>', 'limit on requests for credentials, such as 10/hour'),
  maxActive: text('<number>', 'limit on active credentials, exact on one node'),
  rotateRootAfter: text('<duration>', 'age of its root secret at which somebody should be told, such as 90d'),
  uses: text('<file>', 'where and how its credentials are used, as JSON; - reads standard input'),
  noCheck: off('store it without connecting to the upstream'),
}

export const NO_LIMITS = {
  noRate: off('remove the rate limit'),
  noMaxActive: off('remove the limit on active credentials'),
  noRotateRootAfter: off('tell nobody how old its root secret is'),
  noUses: off('forget what --uses has said'),
}

type RuleOptions = ValuesOf<typeof RULE_OPTIONS & typeof NO_LIMITS>

type Rules = Omit<CreateBackend, 'type' | 'name' | 'config'>

/** The rules in the form of the API, without those of use. Throws `CliError` (usage). */
export function rulesOf(options: RuleOptions): Rules {
  const { defaultTtl, maxTtl, allowScope, description, rate, maxActive, rotateRootAfter } = options
  return {
    default_ttl: defaultTtl,
    max_ttl: maxTtl,
    allowed_scopes: allowScope,
    description,
    rate: rate === true ? undefined : rate === false ? null : rate,
    max_active: maxActive === undefined || maxActive === true ? undefined : countOf(maxActive),
    rotate_root_after:
      rotateRootAfter === true ? undefined : rotateRootAfter === false ? null : rotateRootAfter,
  }
}

function countOf(text: string | false): number | null {
  if (text === false) return null
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw usage('--max-active must be a whole number, at least 1.', 'Write it in digits.')
}

/** Reads the JSON object of `--config`. Throws `CliError` (usage), which repeats nothing of it. */
export async function readConfigOption(
  context: Context,
  path: string | undefined,
): Promise<Record<string, unknown>> {
  return path === undefined ? {} : readObject(context, path, 'Write the fields of the kind as {"host": "…"}.')
}

/** Reads the rules of `--uses FILE`, or `@FILE` as for curl; the server checks them. Throws `CliError` (usage). */
export async function readUsesOption(
  context: Context,
  { uses, config }: Pick<RuleOptions, 'uses' | 'config'>,
): Promise<Pick<Rules, 'uses'>> {
  if (uses === undefined || uses === true) return {}
  if (uses === false) return { uses: null }
  if (uses === '-' && config === '-') throw usage('Only one of --config and --uses reads standard input.')
  const hint = 'Write them as {"allow": [{"methods": ["GET"], "path": "/**"}]}.'
  return { uses: (await readObject(context, uses.replace(/^@/, ''), hint)) as UseRules }
}

async function readObject(context: Context, path: string, hint: string): Promise<Record<string, unknown>> {
  const where = path === '-' ? 'Standard input' : path
  const text = path === '-' ? await readStdin(context) : await readFile(resolve(context.cwd, path), 'utf8')
  const value = parseJson(text)
  if (isObject(value)) return value
  throw usage(`${where} does not contain a JSON object.`, hint)
}

/** Throws `CliError` (usage) with the names of all kinds. */
export async function findKind(client: Client, type: string): Promise<Kind> {
  const types: string[] = []
  for await (const kind of client.admin.kinds()) {
    if (kind.type === type) return kind
    types.push(kind.type)
  }
  const { didYouMean } = await import('../../domain/formats/suggest.ts')
  throw usage(
    `${JSON.stringify(type.slice(0, 40))} is not a kind of backend${didYouMean(type, types)}.`,
    `There ${types.length === 1 ? 'is' : 'are'}: ${types.join(', ')}.`,
  )
}

/** What the server does while a person waits for it to store a backend. */
export const testing = ({ check }: RuleOptions) => (check === false ? 'Storing' : 'Testing the upstream')

/**
 * The first example of the kind whose `<fields>` the configuration has: `<database>:read` of the database that was given.
 */
export function exampleScope(
  { scopes }: Pick<Kind, 'scopes'>,
  config: Readonly<Record<string, unknown>>,
): string | undefined {
  const filled = scopes.forms.map(({ form }) =>
    form.replace(/<(\w+)>/g, (whole, name: string) => {
      const value = config[name]
      return typeof value === 'string' && /^[\w.@+-]+$/.test(value) ? value : whole
    }),
  )
  return filled.find((example) => !example.includes('<'))
}

/** A backend as text. `more`: what is only shown when somebody looks at it. */
export function describeBackend(
  backend: Backend,
  now: number,
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  const config = Object.entries(backend.config).map(([name, value]) => [
    `config.${name}`,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return listing({
    name: backend.name,
    kind: backend.type,
    description: backend.description,
    'default ttl': backend.default_ttl,
    'max ttl': backend.max_ttl,
    scopes: backend.allowed_scopes?.join(', '),
    rate: backend.rate,
    'max active': backend.max_active === undefined ? undefined : String(backend.max_active),
    'rotate root after': backend.rotate_root_after,
    uses: backend.uses && JSON.stringify(backend.uses),
    revocation: backend.revocation === 'exact' ? 'at once' : 'by expiry',
    recovery: backend.recovery === 'none' ? 'what an interrupted issue leaves cannot be found' : undefined,
    ...more,
    created: relative(backend.created_at, now),
    rotation:
      backend.rotation &&
      `not complete since ${relative(backend.rotation.since, now)}: ${backend.rotation.stage === 'proposed' ? 'the old or the new root secret is valid' : 'the old root secret is still to be ended'}`,
    warning: backend.warnings?.join(' '),
    broken:
      backend.broken === true
        ? 'its stored configuration cannot be opened (enter it again), or its plugin is missing (add it again)'
        : undefined,
    ...Object.fromEntries(config),
  })
}
