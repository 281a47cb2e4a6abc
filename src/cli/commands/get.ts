import { readAssignments } from '../frame/assignments.ts'
import { dotenvLine, exportLine, variableLines } from '../frame/dotenv.ts'
import { usage } from '../frame/failure.ts'
import { many, PARAM, text } from '../frame/options.ts'
import { jsonText } from '../frame/terminal-text.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { fieldOf } from '../project-file/credential-field.ts'
import {
  askKindVariables,
  type KindVariables,
  NONE,
  variablesWithin,
} from '../project-file/kind-variables.ts'
import { chooseVariables } from '../project-file/server-variables.ts'
import { fill } from '../project-file/template.ts'
import { type HeldCredential, requireToken } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'

export const verb = defineVerb({
  description:
    'Gets a credential from a backend. Standard output receives only the secret; everything else goes to standard error: on a terminal also the id and the expiry.',
  arguments: [
    {
      name: '<backend>',
      description: 'name of the backend, as listed by `mayfly backends`',
      values: 'backends',
    },
  ],
  options: {
    ttl: text('<duration>', 'lifetime of the credential, such as 10m or 1h30m'),
    scope: many('<scope>', 'request only this scope; may be repeated', { values: 'scopes' }),
    ...PARAM,
    metadata: many(
      '<name=value>',
      'recorded in the audit log; name:=json for values other than text; may be repeated',
    ),
    output: text('<form>', 'secret, json, env (export lines), dotenv or field=NAME', {
      short: 'o',
      default: 'secret',
    }),
    prefix: text(
      '<name>',
      'prefix of the variables with -o env and dotenv; by default the backend, beside the variables that the programs of its kind read',
    ),
  },
  examples: {
    'TOKEN=$(mayfly get github)': 'store the secret in a variable',
    'mayfly get github --ttl 10m --scope my-org/my-repo:read': 'read one repository for ten minutes',
    'eval "$(mayfly get reports -o env)"':
      'set a variable for each field (REPORTS_USERNAME, …) and those of the kind (PGUSER, …)',
    'mayfly get reports -o field=password': 'print one field',
  },
  json: async () => (await import('../../api/api-v1.ts')).IssuedCredential,
  exits: [3, 4, 5],
  run: async (context, options, backend) => {
    const form = formOf(context.out.isJson ? 'json' : options.output)
    const params = readAssignments(options.param, '--param')
    const metadata = readAssignments(options.metadata, '--metadata')
    const { client } = await openAgentSession(context)
    const asksKind = FORMS_OF_VARIABLES.has(form) && options.prefix === undefined
    const kind = asksKind ? await askKindVariables(client, backend) : undefined
    const { ttl, scope: scopes } = options
    const asked = client.issue({ backend, ttl, scopes, params, metadata })
    const issued = requireToken(await whileWaiting(context, `Waiting for ${backend}`, asked))
    try {
      // An interrupt that arrived with the reply: nobody is waiting any more.
      context.signal.throwIfAborted()
      const variables = FORMS_OF_VARIABLES.has(form)
        ? variablesFor(context, issued, { backend, prefix: options.prefix, kind })
        : {}
      await context.out.result(form(issued, variables))
      if (kind !== undefined) noteFiles(context, backend, variablesWithin(kind, issued))
      if (!context.out.isJson) noteLeftOut(context, issued)
    } catch (error) {
      await revokeUndelivered(context, issued.id)
      throw error
    }
    if (context.stderr.isTTY === true && !context.out.isJson) await noteIssued(context, issued)
  },
})

/** On standard error: the secret alone goes to standard output. */
function noteLeftOut({ out }: Context, { backend, left_out: leftOut = [] }: HeldCredential): void {
  if (leftOut.length > 0)
    out.note(`Left out, because ${backend} cannot give it: ${leftOut.join(', ')}`, 'yellow')
}

type Form = (credential: HeldCredential, variables: Readonly<Record<string, string>>) => string

/** Throws `CliError` (usage) for an unknown form, before anything is issued. */
function formOf(name: string): Form {
  if (name === 'secret') return ({ token }) => token
  if (name === 'json') return (credential) => jsonText(credential, 2)
  if (name === 'env') return envForm
  if (name === 'dotenv') return dotenvForm
  if (name.startsWith('field=')) return (credential) => fieldOf(credential, name.slice('field='.length))
  throw usage(
    `Unknown output form ${JSON.stringify(name.slice(0, 40))}.`,
    'Use secret, json, env, dotenv or field=NAME.',
  )
}

const envForm: Form = (_, variables) => variableLines(variables, exportLine)
const dotenvForm: Form = (_, variables) => variableLines(variables, dotenvLine)
const FORMS_OF_VARIABLES: ReadonlySet<Form> = new Set([envForm, dotenvForm])

/** Named after the prefix, by default the backend, and as the kind says. */
function variablesFor(
  { out, env }: Context,
  credential: HeldCredential,
  {
    backend,
    prefix,
    kind = NONE,
  }: { backend: string; prefix: string | undefined; kind: KindVariables | undefined },
): Record<string, string> {
  const {
    spread,
    kind: own,
    notes,
  } = chooseVariables({
    name: backend,
    credential,
    prefix: prefix ?? backend,
    kind: { ...variablesWithin(kind, credential), files: [] },
    env,
  })
  for (const note of notes) out.note(note)
  const named = own.env.map(({ variable, value }) => [variable, fill(value, credential)] as const)
  return { ...spread, ...Object.fromEntries(named) }
}

/** On standard error: a file of a credential exists only while `mayfly run` does. */
function noteFiles({ out }: Context, backend: string, { files }: KindVariables): void {
  if (files.length === 0) return
  const names = files.map(({ variable }) => variable).join(', ')
  out.note(`Not printed: ${names}. Only \`mayfly run --backend ${backend}\` writes the file.`, 'yellow')
}

/** What a person needs to revoke it. */
async function noteIssued({ out, now }: Context, { id, expires_at }: HeldCredential): Promise<void> {
  const { relative } = await import('../frame/times.ts')
  out.note(`${id} expires ${relative(expires_at, now())}.`)
}

const CLEANUP_MS = 5_000

/** Revokes a secret that nobody received, even after Ctrl-C. If that fails too, it expires on its own. */
async function revokeUndelivered(context: Context, id: string): Promise<void> {
  try {
    const { client } = await openAgentSession({ ...context, signal: AbortSignal.timeout(CLEANUP_MS) })
    await client.revoke(id)
  } catch {
    context.out.note(
      `mayfly: credential ${id} was not delivered and could not be revoked; it expires on its own.`,
    )
  }
}
