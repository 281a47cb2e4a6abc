import { describePending, findRequest } from '../admin/pending.ts'
import { collect } from '../frame/collect.ts'
import { table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

type Status = 'pending' | 'approved' | 'rejected' | 'expired'

export const verb = defineVerb<{ status?: Status }, [id?: string]>({
  description:
    'Lists the enrollments and the requests for more scopes that wait for a decision, oldest first; with an id, shows one whole.',
  arguments: [{ name: '[id]', description: 'one of them' }],
  options: [
    {
      flags: '--status <status>',
      description: 'those of another status',
      choices: ['pending', 'approved', 'rejected', 'expired'],
    },
  ],
  examples: [
    { command: 'mayfly pending', about: 'what waits' },
    {
      command: 'mayfly pending --status rejected --json',
      about: 'what was rejected, as JSON',
    },
  ],
  json: async () => {
    const [{ Type }, { PendingEnrollment }] = await Promise.all([
      import('typebox'),
      import('../../api/enrollment.ts'),
    ])
    return Type.Array(PendingEnrollment, { description: 'one object when an id is named' })
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
            ['ID', 'WHAT', 'NAME', 'SCOPES', 'FROM', 'ASKED', 'STATUS'],
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
      context.out.note(status === undefined ? 'Nothing waits for a decision.' : `None is ${status}.`)
  },
})
