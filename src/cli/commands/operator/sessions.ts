import type { Client } from '../../../client/client.ts'
import { isId } from '../../../domain/ids.ts'
import { unknownOperator } from '../../admin/unknown-operator.ts'
import { ADMIN } from '../../admin/verbs.ts'
import { CliError, usage } from '../../frame/failure.ts'
import { LIST_OPTIONS, type ListOptions, showList } from '../../frame/list.ts'
import { relative } from '../../frame/times.ts'
import { type Context, defineVerb } from '../../frame/verb.ts'
import { openAdminClient } from '../../session/admin.ts'

export const verb = defineVerb({
  description:
    'Lists the sessions of operators, oldest first, or ends them at once on all nodes: one by its id, or all of an operator by their e-mail address.',
  arguments: [
    { name: '<action>', description: 'what to do', choices: ['ls', 'end'] },
    { name: '[email or id]', description: 'an operator; with `end`, or a session' },
  ],
  options: LIST_OPTIONS,
  examples: {
    'mayfly operator sessions ls': 'who is logged in, and from where',
    'mayfly operator sessions end alice@example.com': 'after a stolen laptop',
  },
  json: 'array of {id, operator_id, email, method, created_at, last_used, expires_at, ip_address, user_agent, current}; with `end`, {"ended": NUMBER}',
  ...ADMIN,
  run: async (context, options, action, who) => {
    const client = await openAdminClient(context)
    if (action === 'ls') return show(context, client, options, who)
    if (who === undefined) throw usage('Say whose sessions end: an e-mail address, or the id of a session.')
    const ended = await end(client, who)
    await context.out.show({ ended }, () => `Ended ${ended} ${ended === 1 ? 'session' : 'sessions'}.`)
  },
})

async function show(
  context: Context,
  client: Client,
  options: ListOptions,
  operator: string | undefined,
): Promise<void> {
  // So that an unknown name is no empty list.
  if (operator !== undefined) await client.admin.operators.show(operator).catch(unknownOperator)
  await showList(context, options, (page) => client.admin.sessions.list({ operator }, page), {
    things: 'sessions',
    none: 'Nobody is logged in.',
    heading: ['ID', 'E-MAIL', 'FROM', 'LAST USED', 'BY', 'BROWSER'],
    cells: (row) => [
      row.id,
      row.email ?? '',
      row.ip_address ?? '',
      relative(row.last_used, context.now()),
      row.method,
      row.user_agent ?? '',
    ],
  })
}

async function end(client: Client, who: string): Promise<number> {
  if (!isId('session', who))
    return (await client.admin.operators.endSessions(who).catch(unknownOperator)).ended
  await client.admin.sessions.end(who).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== 'not_found') throw error
    throw new CliError('not_found', 'No such session; it may have ended.', {
      hint: 'List them with `mayfly operator sessions ls`.',
      cause: error,
    })
  })
  return 1
}
