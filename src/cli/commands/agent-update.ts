import type { ChangeAgent, ChangedAgent } from '../../client/wire.ts'
import { describeAgent, unknownAgent } from '../admin/describe-agent.ts'
import { ADMIN } from '../admin/verbs.ts'
import { noteWarnings } from '../admin/warnings.ts'
import { usage } from '../frame/failure.ts'
import { flag, many, off, text, type ValuesOf } from '../frame/options.ts'
import { table } from '../frame/output.ts'
import { present } from '../frame/present.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

const OPTIONS = {
  addScope: many('<scope>', 'grant this scope, too; may be repeated'),
  removeScope: many('<scope>', 'take this scope away, as `mayfly agent show` lists it; may be repeated'),
  scope: many('<scope>', 'replace all scopes with this one; may be repeated'),
  expiresIn: text('<duration>', 'new lifetime, from now'),
  expiresAt: text('<time>', 'new expiry, such as 2027-01-31T12:00:00Z'),
  noExpiry: off('the agent does not expire'),
  audience: many('<audience>', 'replace the audiences it may request tokens for; may be repeated'),
  noAudiences: off('take all audiences away'),
  description: text('<text>', 'what the agent is for; empty removes it'),
  revoke: flag('revoke the credentials that its scopes no longer cover'),
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    'Changes an agent at once, on all nodes. Omitted settings stay unchanged. Lists the credentials that the new scopes no longer cover, or revokes them with --revoke.',
  arguments: [{ name: '<name>', description: 'the agent', values: 'agents' }],
  options: OPTIONS,
  examples: {
    'mayfly agent update ci-42 --add-scope shop-db:orders:read': 'grant one more scope',
    'mayfly agent update ci-42 --remove-scope shop-db --revoke':
      'take one away, and end what was issued under it',
    'mayfly agent update ci-42 --expires-in 30d': 'let it live for another month',
  },
  json: async () => (await import('../../api/admin.ts')).ChangedAgent,
  ...ADMIN,
  run: async (context, options, name) => {
    const body = bodyOf(options)
    const client = await openAdminClient(context)
    const changed = await client.admin.agents.update(name, body).catch(unknownAgent)
    await context.out.show(changed, () => describeAgent(changed, context.now()))
    if (!context.out.isJson) {
      noteWarnings(context, changed)
      noteBeyond(context, changed)
    }
  },
})

/** Throws `CliError` (usage). */
function bodyOf(options: Options): ChangeAgent {
  const { addScope, removeScope, scope, expiresIn, expiresAt, audience, description, revoke } = options
  if (scope !== undefined && (addScope ?? removeScope) !== undefined)
    throw usage('--scope replaces all scopes.', 'Omit --add-scope and --remove-scope.')
  if (
    [expiresIn, expiresAt, options.expiry === false ? '' : undefined].filter((one) => one !== undefined)
      .length > 1
  )
    throw usage('--expires-in, --expires-at and --no-expiry are mutually exclusive.')
  if (audience !== undefined && options.audiences === false)
    throw usage('--audience and --no-audiences are mutually exclusive.')
  const body = present<ChangeAgent>({
    scopes: scope,
    add_scopes: addScope,
    remove_scopes: removeScope,
    expires_in: expiresIn,
    expires_at: options.expiry === false ? null : expiresAt,
    audiences: options.audiences === false ? [] : audience,
    description,
    revoke,
  })
  if (Object.keys(body).length > 0) return body
  throw usage('There is nothing to change.', 'List the options with `mayfly agent update --help`.')
}

function noteBeyond(context: Context, { name, out_of_scope: beyond = [] }: ChangedAgent): void {
  const { note } = context.out
  if (beyond.length === 0) return
  const isRevoked = beyond.every(({ status }) => status === 'revoked')
  note(
    isRevoked
      ? 'Revoked, because its scopes no longer cover them:'
      : 'Still active, although its scopes no longer cover them:',
  )
  note(
    table(
      ['CREDENTIAL', 'BACKEND', 'SCOPES', 'EXPIRES'],
      beyond.map((one) => [
        one.id,
        one.backend,
        one.scopes.join(' '),
        relative(one.expires_at, context.now()),
      ]),
    ),
  )
  if (!isRevoked) note(`Revoke them with \`mayfly agent update ${name} --revoke\`.`)
}
