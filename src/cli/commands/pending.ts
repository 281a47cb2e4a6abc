import { describePending, findRequest } from '../admin/pending.ts'
import { collect } from '../frame/collect.ts'
import { table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

type Status = 'pending' | 'approved' | 'rejected' | 'expired'

export const verb = defineVerb<{ status?: Status }, [id?: string]>({
  description:
    'Lists pending enrollments and requests for more scopes, oldest first. With an id, shows one in full.',
  arguments: [{ name: '[id]', description: 'an enrollment or a request' }],
  options: [
    {
      flags: '--status <status>',
      description: 'list those with another status',
      choices: ['pending', 'approved', 'rejected', 'expired'],
    },
  ],
  examples: [
    { command: 'mayfly pending', about: 'what awaits a decision' },
    {
      command: 'mayfly pending --status rejected --json',
      about: 'rejected ones, as JSON',
    },
  ],
  json: async () => {
    const [{ Type }, { PendingEnrollment }] = await Promise.all([
      import('typebox'),
      import('../../api/enrollment.ts'),
    ])
    return Type.Array(PendingEnrollment, { description: 'one object if an id is given' })
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context, { status }, id) => {
    const client = await openAdminClient(context)
    if (id !== undefined) {
      const request = await findRequest(client, id, status)
      return context.out.show(request, () => describePending(request))
    }
    const rows = await collect(client.admin.pending.list(status === undefined ? {} : { status }))
    await context.out.show(rows, () =>
      rows.length === 0
        ? ''
        : table(
            ['ID', 'TYPE', 'NAME', 'SCOPES', 'FROM', 'REQUESTED', 'STATUS'],
            rows.map((row) => [
              row.id,
              row.type === 'enroll' ? 'enrollment' : 'more scopes',
              row.name,
              row.scopes.join(' '),
              row.ip_address ?? '',
              row.created_at,
              row.status,
            ]),
          ),
    )
    if (rows.length === 0 && !context.out.isJson)
      context.out.note(status === undefined ? 'Nothing is pending.' : `None is ${status}.`)
  },
})
