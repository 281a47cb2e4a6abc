import type { Rejection } from '../../client/wire.ts'
import { chooseRequest, isRequestId } from '../admin/choose-request.ts'
import { rejectNetwork } from '../admin/reject-network.ts'
import { ADMIN } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { text, yesTo } from '../frame/options.ts'
import { present } from '../frame/present.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
  description:
    'Rejects an enrollment or a request for more scopes. The agent sees the reason. At a terminal, it offers a choice if you give neither id nor name. With --from, it rejects all pending enrollments that came from an address or a network.',
  arguments: [{ name: '[request]', description: 'its id, or the name of its agent', values: 'requests' }],
  options: {
    reason: text('<text>', 'shown to the agent'),
    from: text('<network>', 'all enrollments from this address or network'),
    ...yesTo('with --from, do not ask for confirmation'),
  },
  examples: {
    'mayfly reject enr_01k3vq8m5xn6w7r2t9y4u1i0pa --reason "ask for orders:read only"':
      'say what to do instead',
    'mayfly reject --from 2001:db8:1::/48': 'after a flood of enrollments',
  },
  json: async () => {
    const [{ Type }, { PendingEnrollment }] = await Promise.all([
      import('typebox'),
      import('../../api/enrollment.ts'),
    ])
    return Type.Union([PendingEnrollment, Type.Array(PendingEnrollment, { description: 'with --from' })])
  },
  ...ADMIN,
  run: async (context, { reason, from, yes }, given) => {
    if (from !== undefined && given !== undefined)
      throw usage('Give either a request or --from.', 'Nothing was rejected.')
    const client = await openAdminClient(context)
    if (from !== undefined) return rejectNetwork(context, client, { from, reason, isSure: yes === true })
    const id =
      given !== undefined && isRequestId(given)
        ? given
        : (await chooseRequest(context, client, given, 'reject')).id
    const rejected = await client.admin.pending.reject(id, present<Rejection>({ reason }))
    await context.out.show(rejected, () => `Rejected ${rejected.name}.`)
  },
})
