import { readAssignments } from '../frame/assignments.ts'
import { dotenvQuote, variablesOf } from '../frame/credential-variables.ts'
import { CliError, usage } from '../frame/failure.ts'
import { shellQuote } from '../frame/shell.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { type HeldCredential, requireToken } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'

interface Options {
  ttl?: string
  scope?: string[]
  param?: string[]
  metadata?: string[]
  output?: string
  prefix?: string
}

export const verb = defineVerb<Options, [backend: string]>({
  description:
    'Gets a credential of a backend. The secret alone goes to standard output, everything else to standard error.',
  arguments: [{ name: '<backend>', description: 'name of the backend; see `mayfly backends`' }],
  options: [
    { flags: '--ttl <duration>', description: 'how long it lives, such as 10m or 1h30m' },
    { flags: '--scope <scope>', description: 'only this scope; may be repeated', repeatable: true },
    {
      flags: '--param <name=value>',
      description: 'option of this kind of backend; name:=json for other than text; may be repeated',
      repeatable: true,
    },
    {
      flags: '--metadata <name=value>',
      description: 'recorded in the audit; name:=json for other than text; may be repeated',
      repeatable: true,
    },
    {
      flags: '-o, --output <form>',
      description: 'secret, json, env (export lines), dotenv or field=NAME',
      default: 'secret',
    },
    {
      flags: '--prefix <name>',
      description: 'of the variables with -o env and dotenv; the backend by default',
    },
  ],
  examples: [
    { command: 'TOKEN=$(mayfly get github)', about: 'the secret in a variable' },
    {
      command: 'mayfly get github --ttl 10m --scope my-org/my-repo:read',
      about: 'for ten minutes, to read one repository',
    },
    {
      command: 'eval "$(mayfly get reports -o env)"',
      about: 'each part as a variable: REPORTS_USERNAME, REPORTS_PASSWORD, …',
    },
    { command: 'mayfly get reports -o field=password', about: 'one part of it' },
  ],
  json: async () => (await import('../../api/api-v1.ts')).IssuedCredential,
  exits: [3, 4, 5],
  run: async (context, options, backend) => {
    const form = formOf(context.out.isJson ? 'json' : (options.output ?? 'secret'))
    const params = readAssignments(options.param, '--param')
    const metadata = readAssignments(options.metadata, '--metadata')
    const { client } = await openAgentSession(context)
    const issued = requireToken(
      await client.issue({
        backend,
        ...(options.ttl === undefined ? {} : { ttl: options.ttl }),
        ...(options.scope === undefined ? {} : { scopes: options.scope }),
        ...(params === undefined ? {} : { params }),
        ...(metadata === undefined ? {} : { metadata }),
      }),
    )
    try {
      // An interruption that came with the answer: nobody waits for it any more.
      context.signal.throwIfAborted()
      await context.out.result(form(issued, options.prefix))
    } catch (error) {
      await revokeUndelivered(context, issued.id)
      throw error
    }
  },
})

type Form = (credential: HeldCredential, prefix: string | undefined) => string

/** Before anything is issued. Throws `CliError` (usage) for a form that there is not. */
function formOf(name: string): Form {
  if (name === 'secret') return ({ token }) => token
  if (name === 'json') return (credential) => JSON.stringify(credential, null, 2)
  if (name === 'env') return (credential, prefix) => lines(credential, prefix, 'export ', shellQuote)
  if (name === 'dotenv') return (credential, prefix) => lines(credential, prefix, '', dotenvQuote)
  if (name.startsWith('field=')) return (credential) => fieldOf(credential, name.slice('field='.length))
  throw usage(
    `There is no output form ${JSON.stringify(name.slice(0, 40))}.`,
    'Use secret, json, env, dotenv or field=NAME.',
  )
}

function lines(
  credential: HeldCredential,
  prefix: string | undefined,
  start: string,
  quote: (text: string) => string,
): string {
  return Object.entries(variablesOf(credential, prefix))
    .map(([name, value]) => `${start}${name}=${quote(value)}`)
    .join('\n')
}

const PLAIN_FIELDS = ['token', 'id', 'expires_at', 'created_at', 'ttl'] as const

function fieldOf(credential: HeldCredential, name: string): string {
  const { fields = {} } = credential
  if (Object.hasOwn(fields, name)) return String(fields[name])
  const plain = PLAIN_FIELDS.find((one) => one === name)
  if (plain !== undefined) return credential[plain]
  throw new CliError(
    'no_such_field',
    `The credential has no field ${JSON.stringify(name.slice(0, 40))}, and was revoked.`,
    {
      exit: 2,
      hint: `It has: ${[...Object.keys(fields), ...PLAIN_FIELDS].join(', ')}.`,
    },
  )
}

const CLEANUP_MS = 5_000

/** A secret that nobody got shall not live, also after Ctrl-C. Where that fails too, it ends by itself. */
async function revokeUndelivered(context: Context, id: string): Promise<void> {
  try {
    const { client } = await openAgentSession({ ...context, signal: AbortSignal.timeout(CLEANUP_MS) })
    await client.revoke(id)
  } catch {
    context.out.note(
      `mayfly: credential ${id} was not delivered and could not be revoked; it ends by itself.`,
    )
  }
}
