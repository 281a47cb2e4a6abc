import { chooseRequest, isRequestId } from '../admin/choose-request.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb<{ reason?: string }, [given: string | undefined]>({
  description:
    'Rejects an enrollment or a request for more scopes. The agent sees the reason. At a terminal, it offers a choice if you give neither id nor name.',
  arguments: [{ name: '[request]', description: 'its id, or the name of its agent', values: 'requests' }],
  options: [{ flags: '--reason <text>', description: 'shown to the agent' }],
  examples: [
    {
      command: 'mayfly reject enr_01k3vq8m5xn6w7r2t9y4u1i0pa --reason "ask for orders:read only"',
      about: 'say what to do instead',
    },
  ],
  json: async () => (await import('../../api/enrollment.ts')).PendingEnrollment,
  exits: [3, 4, 5],
  admin: true,
  run: async (context, { reason }, given) => {
    const client = await openAdminClient(context)
    const id =
      given !== undefined && isRequestId(given)
        ? given
        : (await chooseRequest(context, client, given, 'reject')).id
    const rejected = await client.admin.pending.reject(id, reason === undefined ? {} : { reason })
    await context.out.show(rejected, () => `Rejected ${rejected.name}.`)
  },
})
