import { EXIT_MEANINGS, type ExitCode } from '../src/cli/frame/failure.ts'
import { optionRows, usageOf } from '../src/cli/frame/help.ts'
import { DATA_DIR, GLOBALS, type Options } from '../src/cli/frame/options.ts'
import type { AnyVerb, Entry, VerbEntry } from '../src/cli/frame/verb.ts'
import { GROUPS } from '../src/cli/verbs.ts'
import { MADE, table } from './markdown.ts'

/** docs/reference/cli.md: every verb as it describes itself. */
export async function renderCliPage(): Promise<string> {
  const sections: string[] = []
  for (const { title, verbs } of GROUPS) {
    sections.push(`## ${title}`)
    for (const [words, entry] of verbs.flatMap(leaves))
      sections.push(await verbSection(words, await entry.load()))
  }
  return `${[MADE, '# Command line', ...INTRODUCTION, ...sections].join('\n\n')}\n`
}

/** Its verbs without aliases, each with its words: `agent create`. */
export function leaves(entry: Entry): (readonly [words: string, entry: VerbEntry])[] {
  return allLeaves(entry).filter(([, { aliasOf }]) => aliasOf === undefined)
}

function allLeaves(entry: Entry): (readonly [words: string, entry: VerbEntry])[] {
  const own = 'verbs' in entry ? [] : [[entry.name, entry] as const]
  const inner = ('verbs' in entry ? entry.verbs : entry.inner) ?? []
  return [...own, ...inner.map((inner) => [`${entry.name} ${inner.name}`, inner] as const)]
}

const rows = (options: Options) => optionRows(options).map(([flags, meaning]) => [`\`${flags}\``, meaning])

const INTRODUCTION = [
  'Results go to standard output, everything else to standard error. With `--json`, a command prints JSON of the shape given below, and an error is `{"error": {"code", "message", "hint"}}` on standard error. Without it, an error is one line that says what happened and what to do next.',
  table(['Exit code', 'Meaning'], Object.entries(EXIT_MEANINGS)),
  'Every command uses exit codes 0, 1 and 2; those that use others list them. `mayfly run` exits with the code of its command.',
  'Options of every command:',
  table(['Option', 'Meaning'], rows(GLOBALS)),
  'Commands that administer a server also take:',
  table(['Option', 'Meaning'], rows(DATA_DIR)),
  'Commands for people show times relative to now, such as `in 9 min`; the audit log and `--json` show them exactly. At a terminal, a listing shows its first 50 rows and says how many there are; `--limit` and `--all` show more. Where its output is not a terminal, it shows all.',
  'A command takes its server, its profile and its login from the first of these that there is:',
  table(
    ['What', 'From'],
    [
      ['Server', '`--server`; `MAYFLY_SERVER`; the profile; `http://127.0.0.1:8620`'],
      ['Profile', '`--profile`; `MAYFLY_PROFILE`; the current profile, or the one for the named server'],
      [
        'Login',
        'with `--profile`: its login; without: `MAYFLY_TOKEN`; `MAYFLY_CLIENT_ID` with `MAYFLY_CLIENT_SECRET`; the login of the profile; the identity of the job, pod or machine',
      ],
      [
        'Login of commands for administrators',
        'with `--data-dir`: the local administrator; the variables above; the operator’s login of the profile; with `--profile`, its agent’s; on the server’s machine, the local administrator; the agent’s login of the profile; the identity of the job, pod or machine',
      ],
    ],
  ),
  'A login from the environment is sent only to the server of the environment, which is the one that a command without `--server` and `--profile` uses. With another `--server`, a command uses the login that is stored for that server. What `git setup` and the helpers write and print names its server, and its profile if the login is a stored one, and the environment of a later call changes neither.',
  'Without another login, a command shows the server who this job or machine is, if variables and files say that it runs in GitHub Actions, Forgejo Actions, GitLab CI (`MAYFLY_ID_TOKEN`), a pod with a projected token (`/var/run/secrets/mayfly/token`, or the file that `MAYFLY_IDENTITY_TOKEN_FILE` names), or beside an agent of SPIFFE (`SPIFFE_ENDPOINT_SOCKET`). `mayfly login --identity` says which, and also asks the metadata services of AWS, Google Cloud and Azure. The token is for the address in `--server`, `MAYFLY_SERVER` or the profile, or for `--audience`, and one for anybody else is not sent. Commands of the same job share the access token, in `~/.cache/mayfly/identities`; `mayfly logout` ends it.',
  'Files of other programs may call the helpers by the names of earlier versions: `aws credential-process`, `gcp-credential`, `kubectl-credential`, `npm-token`, `api-key`, `docker-credential`, `terraform-credentials` and `git-credential`.',
  'A login stores `--server` and `--ca` under its profile, and hints repeat the options that were given. `localhost` and `127.0.0.1` with the same port are one server.',
  'A login remembers the keys that its server publishes. If the server refuses the login, or issues an access token by a key that is not among them, the command compares the keys again. It warns if none of them is known, because another server may be answering at the address.',
  '`MAYFLY_TOKEN_FILE` and `MAYFLY_CLIENT_SECRET_FILE` name files that hold the secrets. `NO_COLOR` turns colours off. A listing or an audit that is longer than the terminal goes through the program in `PAGER`, if it is set. With `HTTPS_PROXY`, connections with TLS go through that proxy, except to this machine and to the hosts in `NO_PROXY`. The local administrator is whom `admin.sock` in the data directory lets in, or the rule for local callers. With a login, commands for administrators need the admin scope.',
  'A profile keeps the login of an agent and that of an operator, a person, side by side. Commands for agents never use the operator’s: it gets no credentials. An operator’s login that has ended is an error, and no other login takes its place; `mayfly logout --operator` removes it.',
]

async function verbSection(words: string, verb: AnyVerb): Promise<string> {
  const parts = [
    `### mayfly ${words}`,
    verb.description,
    `    mayfly ${words} ${usageOf(verb)}`,
    argumentTable(verb),
    verb.options === undefined ? '' : table(['Option', 'Meaning'], rows(verb.options)),
    verb.globals === false ? 'It takes none of the options of every command.' : '',
    verb.examples.map(({ about, command: line }) => `    # ${about}\n    ${line}`).join('\n\n'),
    await jsonLine(verb),
    exitLine(verb),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

function argumentTable(verb: AnyVerb): string {
  if (verb.arguments === undefined || verb.arguments.length === 0) return ''
  return table(
    ['Argument', 'Meaning'],
    verb.arguments.map(({ name, description, choices }) => [
      `\`${name}\``,
      choices === undefined ? description : `${description} (${choices.join(', ')})`,
    ]),
  )
}

async function jsonLine(verb: AnyVerb): Promise<string> {
  if (verb.json === undefined) return ''
  if (typeof verb.json === 'string')
    return `With \`--json\`: ${/^[[{]/.test(verb.json) ? `\`${verb.json}\`` : verb.json}`
  const schema = (await verb.json()) as Shape
  const words = schema.description === undefined ? '' : ` (${schema.description})`
  return `With \`--json\`: \`${shapeOf(schema)}\`${words}`
}

function exitLine(verb: AnyVerb): string {
  const codes = (verb.exits ?? []) as readonly ExitCode[]
  if (codes.length === 0) return ''
  return `Exit codes besides 0, 1 and 2: ${codes.map((code) => `${code} ${EXIT_MEANINGS[code]}`).join(', ')}.`
}

interface Shape {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Shape[]
  readonly items?: Shape
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly description?: string
}

/** A JSON Schema in one line: `{id: string, expires_at: time | null, fields?: object}`. */
function shapeOf(schema: Shape): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.anyOf !== undefined) return schema.anyOf.map(shapeOf).join(' | ')
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  const named = types.map((type) => (type === 'null' ? 'null' : typeName(type, schema)))
  return named.length === 0 && schema.enum !== undefined
    ? schema.enum.map((one) => JSON.stringify(one)).join(' | ')
    : named.join(' | ') || 'any'
}

const MOST_CHOICES = 8

function typeName(type: string, schema: Shape): string {
  if (type === 'string' && schema.format === 'date-time') return 'time'
  if (schema.enum !== undefined && schema.enum.length <= MOST_CHOICES)
    return schema.enum.map((one) => JSON.stringify(one)).join(' | ')
  if (type === 'array') return arrayName(schema.items)
  if (type !== 'object' || schema.properties === undefined) return type
  const fields = Object.entries(schema.properties).map(
    ([name, field]) => `${name}${schema.required?.includes(name) === true ? '' : '?'}: ${shapeOf(field)}`,
  )
  return `{${fields.join(', ')}}`
}

function arrayName(items: Shape | undefined): string {
  const inner = items === undefined ? 'any' : shapeOf(items)
  return inner.includes(' | ') && !inner.startsWith('{') ? `(${inner})[]` : `${inner}[]`
}
