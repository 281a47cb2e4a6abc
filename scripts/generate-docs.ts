import { readFile, writeFile } from 'node:fs/promises'
import { RecipeSchema } from '../src/backends/http/schema.ts'
import { IdentitySchema, PlatformSchema } from '../src/config/identity-schema.ts'
import { ReceiverSchema } from '../src/config/notify-schema.ts'
import { PolicySchema } from '../src/config/policy-schema.ts'
import { CONFIG_ENV, ConfigSchema, FIELDS, type Field } from '../src/config/schema.ts'
import { renderAuditPage } from './docs-audit.ts'
import { renderCliPage } from './docs-cli.ts'
import { renderErrorsPage } from './docs-errors.ts'
import { renderOpenApi } from './docs-openapi.ts'
import { MADE, table } from './markdown.ts'
import { renderNotice } from './notice.ts'

export interface Page {
  /** Relative to the root of the repository. */
  readonly path: string
  render(): string | Promise<string>
}

/** Every generated page. A test compares each with what its function returns. */
export const PAGES: readonly Page[] = [
  { path: 'docs/reference/config.md', render: renderConfigPage },
  { path: 'docs/reference/config.schema.json', render: renderConfigSchema },
  { path: 'docs/reference/recipe.schema.json', render: renderRecipeSchema },
  { path: 'docs/reference/errors.md', render: renderErrorsPage },
  { path: 'docs/reference/audit.md', render: renderAuditPage },
  { path: 'docs/reference/cli.md', render: renderCliPage },
  { path: 'docs/reference/openapi.json', render: renderOpenApi },
  { path: 'NOTICE', render: renderNotice },
]

export function renderConfigPage(): string {
  return `${[
    MADE,
    '# Configuration',
    'The server takes each setting from its flag, else from its environment variable, else from the configuration file, else from its default. `--config` or `' +
      CONFIG_ENV +
      '` names the file; without it the server reads none. Files `conf.d/*.yaml` beside it are read as well, in the order of their names: the later file decides, each setting for itself, and a list or `policies` replaces the earlier one whole.',
    'The file is YAML; [`config.schema.json`](config.schema.json) describes it to editors. Unknown keys and unknown `MAYFLY_*` variables are errors. The server reports all errors together, each with its place, and does not start. Separate the items of a list in a variable by commas. Write durations as `45s`, `10m`, `1h30m`, `7d`. Relative paths start in the directory where you start the server.',
    '## Settings',
    table(
      ['Setting', 'Meaning', 'Default', 'Environment', 'Flag'],
      FIELDS.filter(({ path }) => path !== 'policies').map(settingRow),
    ),
    '## Policies',
    `${descriptionOf('policies')} Policies can only be in the file, under \`policies\`. The server does not start with a faulty policy. [Approve agents by policy](../guides/enrollment-policies.md) has an example.`,
    table(['Key', 'Meaning', 'Required'], keyRows(PolicySchema)),
    'A policy never approves scopes that begin with `admin`. An agent that asks for no scopes gets those of the policy. An agent that asks for scopes gets exactly these if the policy covers all of them; otherwise the request waits for an administrator.',
    '## Receivers of notifications',
    `${descriptionOf('notify')} They can only be in the file, under \`notify\`; each has a \`name\` and one of \`webhook\`, \`smtp\` and \`slack\`. [Notifications](../operations/notifications.md) has an example.`,
    table(['Key', 'Meaning', 'Required'], receiverRows()),
    '## Identities',
    `${descriptionOf('identities')} They can only be in the file, under \`identities\`. An entry has exactly one of \`issuer\`, \`issuer_pattern\` and \`trust_domain\`, and exactly one of \`subject\` and \`subject_pattern\`. Patterns have the syntax of [RE2](https://github.com/google/re2/wiki/Syntax) and are compared over the whole value. A token that two entries match is refused. The server does not start with a faulty entry: \`mayfly identity check\` finds the faults before, \`mayfly identity add\` writes an entry, and \`mayfly identity test\` says which entry takes a token. [Keyless login in CI](../guides/ci.md) has examples.`,
    table(['Key', 'Meaning', 'Required'], keyRows(IdentitySchema)),
    '## Platforms',
    `${descriptionOf('platforms')} They can only be in the file, under \`platforms\`. [Hosted agents](../guides/hosted-agents.md) has an example.`,
    table(['Key', 'Meaning', 'Required'], keyRows(PlatformSchema)),
    '## Example',
    EXAMPLE,
  ].join('\n\n')}\n`
}

export const EXAMPLE = `\`\`\`yaml
listen: 0.0.0.0:8620
issuer: https://mayfly.example.com
data_dir: /var/lib/mayfly
trusted_proxies: [10.0.0.0/8]
limits:
  issue_rate: 100/minute
policies:
  - name: ci
    pattern: "ci-*"
    scopes: ["github:acme/*"]
    deny: ["github:acme/secrets"]
    auto_approve: true
    max_agent_lifetime: 24h
    max_ttl: 1h
    max_agents: 50
    rate: 10/hour
\`\`\``

function settingRow(field: Field): string[] {
  return [
    `\`${field.path}\``,
    `${field.description}${field.secret ? ' Secret.' : ''}${field.canReload ? ' A reload applies it.' : ''}`,
    field.defaultText,
    field.env === undefined ? '' : `\`${field.env}\``,
    field.flag === undefined ? '' : `\`--${field.flag}\``,
  ]
}

function receiverRows(): string[][] {
  const { name, ...ways } = ReceiverSchema.properties
  const rows = Object.entries(ways).flatMap(([way, { properties, required }]) => {
    const needed: readonly string[] = required
    return Object.entries(properties).map(([key, schema]) => [
      `\`${way}.${key}\``,
      (schema as { description?: string }).description ??
        'An address, such as `Mayfly <mayfly@example.com>`.',
      needed.includes(key) ? 'yes' : '',
    ])
  })
  return [['`name`', String((name as { description?: string }).description), 'yes'], ...rows]
}

function keyRows(schema: { readonly required: readonly string[]; readonly properties: object }): string[][] {
  return Object.entries(schema.properties).map(
    ([key, { description }]: [string, { description?: string }]) => [
      `\`${key}\``,
      String(description),
      schema.required.includes(key) ? 'yes' : '',
    ],
  )
}

function descriptionOf(path: string): string {
  return FIELDS.find((field) => field.path === path)?.description ?? ''
}

/** JSON Schema of the file, without our own keywords and without settings that a file cannot hold. */
export function renderConfigSchema(): string {
  const away = FIELDS.filter(({ sources }) => !sources.includes('file')).map(({ path }) => path as string)
  const { properties, ...rest } = JSON.parse(JSON.stringify(ConfigSchema))
  const kept = Object.entries(properties).filter(([name]) => !away.includes(name))
  return `${toJson(withoutMarks({ ...rest, properties: Object.fromEntries(kept) }), '')}\n`
}

/** JSON Schema of a recipe, for editors. */
export function renderRecipeSchema(): string {
  return `${toJson(JSON.parse(JSON.stringify(RecipeSchema)), '')}\n`
}

function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => !key.startsWith('x-'))
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutMarks(inner)]))
}

/** Formatted as Biome does: objects over several lines, short lists on one line. */
function toJson(value: unknown, indent: string): string {
  const deeper = `${indent}  `
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== 'object')) {
      const flat = `[${value.map((item) => JSON.stringify(item)).join(', ')}]`
      if (flat.length < 80) return flat
    }
    return `[\n${value.map((item) => deeper + toJson(item, deeper)).join(',\n')}\n${indent}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const lines = Object.entries(value).map(
    ([key, inner]) => `${deeper}${JSON.stringify(key)}: ${toJson(inner, deeper)}`,
  )
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
}

const ROOT = new URL('../', import.meta.url)

/** The paths of pages that differ from their committed version. */
export async function stalePages(): Promise<string[]> {
  const stale: string[] = []
  for (const page of PAGES) {
    const committed = await readFile(new URL(page.path, ROOT), 'utf8').catch(() => undefined)
    if (committed !== (await page.render())) stale.push(page.path)
  }
  return stale
}

if (import.meta.main) {
  for (const page of PAGES) await writeFile(new URL(page.path, ROOT), await page.render())
}
