import { followPending } from '../admin/follow-pending.ts'
import { describePending, findRequest, PENDING_HEADING, pendingCells } from '../admin/pending.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { LIST_OPTIONS, showList } from '../frame/list.ts'
import { choice, flag } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
  description:
    'Lists pending enrollments, requests for more scopes and claims (agents of platforms without rights), oldest first. With an id, shows one in full.',
  arguments: [{ name: '[id]', description: 'an enrollment or a request', values: 'requests' }],
  options: {
    status: choice('<status>', 'list those with another status', [
      'pending',
      'approved',
      'rejected',
      'expired',
    ]),
    ...LIST_OPTIONS,
    follow: flag('print what is pending, then new ones, until Ctrl-C', 'f'),
  },
  examples: {
    'mayfly pending': 'what awaits a decision',
    'mayfly pending --follow': 'watch what comes in',
    'mayfly pending --status rejected --json': 'rejected ones, as JSON',
  },
  json: arrayOf(
    async () => (await import('../../api/enrollment.ts')).PendingEnrollment,
    'one object if an id is given; with --follow one object per line',
  ),
  ...ADMIN,
  run: async (context, { status, follow, ...options }, id) => {
    if (follow === true && (id !== undefined || status !== undefined || options.limit !== undefined))
      throw usage('--follow shows all that is pending.', 'Use it without an id, --status or --limit.')
    const client = await openAdminClient(context)
    if (follow === true) return followPending(context, client)
    if (id !== undefined) {
      const request = await findRequest(client, id, status)
      return context.out.show(request, () => describePending(request, context.now()))
    }
    await showList(context, options, (page) => client.admin.pending.list({ status }, page), {
      things: 'requests',
      none: status === undefined ? 'Nothing is pending.' : `None is ${status}.`,
      heading: [...PENDING_HEADING, 'STATUS'],
      cells: (row) => [
        ...pendingCells(row, context.now()),
        row.name_taken === true ? `${row.status}, name taken` : row.status,
      ],
    })
  },
})
