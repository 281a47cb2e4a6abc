import type { InvitedOperator, Operator } from '../../../client/wire.ts'
import { unknownOperator } from '../../admin/unknown-operator.ts'
import { ADMIN, arrayOf } from '../../admin/verbs.ts'
import { usage } from '../../frame/failure.ts'
import { LIST_OPTIONS, showList } from '../../frame/list.ts'
import { many, text, yesTo } from '../../frame/options.ts'
import { listing } from '../../frame/output.ts'
import { confirmed } from '../../frame/prompt.ts'
import { relative } from '../../frame/times.ts'
import { type Context, defineVerb } from '../../frame/verb.ts'
import { openAdminClient } from '../../session/admin.ts'

const schema = async () => (await import('../../../api/operators.ts')).Operator
const EMAIL = { name: '<email>', description: 'the e-mail address or id of an operator' } as const
const SCOPES = {
  scope: many('<scope>', 'an admin scope, such as admin:* or admin:agents:read; may be repeated'),
  backendScope: many('<scope>', 'a scope of a backend that they may grant to agents; may be repeated'),
}

export const list = defineVerb({
  description: 'Lists the operators, oldest first.',
  options: LIST_OPTIONS,
  examples: { 'mayfly operator ls': 'all of them' },
  json: arrayOf(schema),
  ...ADMIN,
  run: async (context, options) => {
    const { admin } = await openAdminClient(context)
    await showList(context, options, admin.operators.list, {
      things: 'operators',
      none: 'No operators yet. Make the first with `mayfly console`.',
      heading: ['E-MAIL', 'NAME', 'SCOPES', 'BACKEND SCOPES', 'LAST LOGIN'],
      cells: (row) => [
        row.email ?? row.id,
        row.name,
        row.scopes.join(' '),
        row.backend_scopes.join(' '),
        row.joined_at === null ? 'invited' : relative(row.last_login ?? 'never', context.now()),
      ],
    })
  },
})

export const invite = defineVerb({
  description:
    'Invites an operator, and prints a link that works once, within a day: the person who opens it is that operator, and registers a passkey. Send it on a way that only they read. Without scopes, makes another link for an operator who is there already.',
  arguments: [{ name: '<email>', description: 'their e-mail address' }],
  options: { name: text('<name>', 'their name'), ...SCOPES },
  examples: {
    "mayfly operator invite alice@example.com --scope 'admin:*' --backend-scope '*'":
      'somebody who may do everything',
    "mayfly operator invite bob@example.com --scope 'admin:enrollments:*' --backend-scope orders":
      'somebody who decides about requests for one backend',
    'mayfly operator invite bob@example.com': 'another link, after a lost passkey',
  },
  json: async () => (await import('../../../api/operators.ts')).InvitedOperator,
  ...ADMIN,
  run: async (context, { name, scope, backendScope }, email) => {
    const isNew = (scope ?? backendScope ?? name) !== undefined
    const { admin } = await openAdminClient(context)
    const body = { email, name, scopes: scope ?? [], backend_scopes: backendScope }
    const invited = await (isNew
      ? admin.operators.invite(body)
      : admin.operators.inviteAgain(email).catch(unknownOperator))
    await showInvitation(context, invited)
  },
})

async function showInvitation(context: Context, invited: InvitedOperator): Promise<void> {
  const { url, expires_at: until } = invited.invitation
  await context.out.show(invited, () => url)
  if (!context.out.isJson)
    context.out.note(`For ${invited.email}. It works once, and ends ${relative(until, context.now())}.`)
}

export const change = defineVerb({
  description:
    'Changes the name of an operator, or replaces their scopes, at once on all nodes. What is left out stays; an empty scope (--scope "") takes all of that kind.',
  arguments: [EMAIL],
  options: { name: text('<name>', 'their name'), ...SCOPES },
  examples: {
    "mayfly operator change bob@example.com --scope 'admin:audit:read'":
      'the audit, and nothing else of the administration',
  },
  json: schema,
  ...ADMIN,
  run: async (context, { name, scope, backendScope }, email) => {
    const body = {
      name,
      scopes: allOf(scope),
      backend_scopes: allOf(backendScope),
    }
    if (Object.values(body).every((value) => value === undefined))
      throw usage('There is nothing to change.', 'Give --name, --scope or --backend-scope.')
    const { admin } = await openAdminClient(context)
    const changed = await admin.operators.update(email, body).catch(unknownOperator)
    await context.out.show(changed, () => describe(changed, context.now()))
  },
})

const allOf = (scopes: readonly string[] | undefined) => scopes?.filter((scope) => scope !== '')

function describe(operator: Operator, now: number): string {
  return listing({
    'e-mail': operator.email ?? '(none verified)',
    id: operator.id,
    name: operator.name,
    scopes: operator.scopes.join(', ') || '(none)',
    'backend scopes': operator.backend_scopes.join(', ') || '(none)',
    'last login': relative(operator.last_login ?? 'never', now),
  })
}

export const remove = defineVerb({
  description: 'Removes an operator. Their sessions, passkeys and links end at once, on all nodes.',
  arguments: [EMAIL],
  options: { ...yesTo('do not ask for confirmation') },
  examples: { 'mayfly operator rm bob@example.com': 'ask, then remove them' },
  json: '{"deleted": "EMAIL"}',
  ...ADMIN,
  run: async (context, { yes }, email) => {
    const { admin } = await openAdminClient(context)
    const operator = await admin.operators.show(email).catch(unknownOperator)
    const question = `Remove the operator ${operator.email}?`
    const otherwise = 'Use --yes to remove them without a question.'
    await confirmed(context, yes, question, { otherwise, no: 'Nobody was removed.' })
    await admin.operators.delete(operator.id).catch(unknownOperator)
    await context.out.show({ deleted: operator.email }, () => `Removed ${operator.email}.`)
  },
})
