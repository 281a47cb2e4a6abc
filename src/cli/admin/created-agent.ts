import { resolve } from 'node:path'
import type { Agent, CreatedAgent } from '../../client/wire.ts'
import { dotenvLine, exportLine, variableLines } from '../frame/dotenv.ts'
import { CliError, usage } from '../frame/failure.ts'
import { text, type ValuesOf } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { jsonText } from '../frame/terminal-text.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { isPresent, writePrivateFile } from '../session/private-file.ts'

type Form = (agent: CreatedAgent) => string

/** How a command that gets new secrets delivers them. */
export const FORM_OPTIONS = {
  output: text('<form>', 'text, json, env (export lines), dotenv or field=NAME', {
    short: 'o',
    default: 'text',
  }),
  write: text('<file>', 'write JSON to a new file of mode 0600 instead'),
}

/**
 * How to print the secrets, or write them to the file. Called before there are any, because they cannot be shown again:
 * throws `CliError` (usage) for an unknown form, and for a file that exists.
 */
export async function deliveryOf(
  context: Context,
  { output, write }: ValuesOf<typeof FORM_OPTIONS>,
): Promise<(made: CreatedAgent) => Promise<void>> {
  const { out } = context
  const form = createdForm(out.isJson ? 'json' : output)
  if (write === undefined)
    return async (made) => {
      await out.result(form(made))
      if (!out.isJson) out.note('The token and the client secret cannot be shown again.')
    }
  const file = resolve(context.cwd, write)
  if (await isPresent(file))
    throw usage(`${write} already exists.`, 'Choose a new file, or move the old one away.')
  return async (made) => {
    await writePrivateFile(file, `${JSON.stringify(made, null, 2)}\n`)
    const { id, name, scopes, expires_at } = made
    await out.show({ id, name, scopes, expires_at, written_to: file }, () => `Written to ${file}.`)
  }
}

function createdForm(name: string): Form {
  if (name === 'text') return (agent) => listing(factsOf(agent))
  if (name === 'json') return (agent) => jsonText(agent, 2)
  if (name === 'env') return (agent) => lines(agent, exportLine)
  if (name === 'dotenv') return (agent) => lines(agent, dotenvLine)
  const field = /^field=([a-z_]+)$/.exec(name)?.[1]
  if (field !== undefined && (FIELDS as readonly string[]).includes(field))
    return (agent) => String(factsOf(agent)[field])
  throw usage(
    'Unknown output form.',
    `Use text, json, env, dotenv or field=NAME with one of ${FIELDS.join(', ')}.`,
  )
}

const FIELDS = [
  'name',
  'id',
  'scopes',
  'expires_at',
  'token',
  'client_id',
  'client_secret',
  'signing_key_id',
  'signing_email',
] as const

function factsOf(agent: CreatedAgent): Record<string, string> {
  return {
    name: agent.name,
    id: agent.id,
    scopes: agent.scopes.join(' '),
    expires_at: agent.expires_at ?? 'never',
    token: agent.token,
    client_id: agent.oidc.client_id,
    client_secret: agent.oidc.client_secret,
    signing_key_id: agent.signing_key_id,
    signing_email: agent.signing_email,
  }
}

/** The token alone is a login, and takes precedence. */
function lines(agent: CreatedAgent, lineOf: (name: string, value: string) => string): string {
  const variables = {
    MAYFLY_TOKEN: agent.token,
    MAYFLY_CLIENT_ID: agent.oidc.client_id,
    MAYFLY_CLIENT_SECRET: agent.oidc.client_secret,
  }
  return variableLines(variables, lineOf)
}

export function describeAgent(agent: Agent, now: number): string {
  return listing({
    name: agent.name,
    id: agent.id,
    scopes: agent.scopes.join(', ') || '(none)',
    owner: agent.owner,
    keyless:
      agent.identity &&
      [
        `${agent.identity.kind} ${agent.identity.name}:`,
        agent.identity.issuer,
        ...agent.identity.values,
      ].join(' '),
    created: relative(agent.created_at, now),
    expires: relative(agent.expires_at ?? 'never', now),
    'last used': relative(agent.last_used ?? 'never', now),
    from: agent.last_used_from ?? undefined,
    'live credentials': String(agent.live),
    audiences: agent.audiences?.join(' '),
    description: agent.description,
    'old secrets end':
      agent.previous_secrets_until === undefined ? undefined : relative(agent.previous_secrets_until, now),
    policy: agent.policy ?? undefined,
  })
}

/** For the catch of a call about one agent. */
export function unknownAgent(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'agent_not_found') throw error
  throw new CliError('agent_not_found', 'No such agent.', {
    hint: 'List them with `mayfly agent ls`.',
    cause: error,
  })
}
