import { BlockList, isIP } from 'node:net'
import type { Client } from '../../client/client.ts'
import type { PendingEnrollment } from '../../client/wire.ts'
import { chooseRequest, isRequestId } from '../admin/pending.ts'
import { ADMIN } from '../admin/verbs.ts'
import { CliError, usage } from '../frame/failure.ts'
import { collect } from '../frame/list.ts'
import { text, yesTo } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
  description:
    'Rejects an enrollment, a request for more scopes or a claim; the agent of a claim stays without rights. Whoever asked sees the reason. At a terminal, it offers a choice if you give neither id nor name. With --from, it rejects all pending enrollments that came from an address or a network.',
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
    const rejected = await client.admin.pending.reject(id, { reason })
    await context.out.show(rejected, () => `Rejected ${rejected.name}.`)
  },
})

interface NetworkRejection {
  readonly from: string
  readonly reason: string | undefined
  readonly isSure: boolean
}

/** Rejects every pending enrollment that came from an address or a network, and says what remains. Throws `CliError`. */
async function rejectNetwork(context: Context, client: Client, rejection: NetworkRejection): Promise<void> {
  const { from, reason, isSure } = rejection
  const holds = networkTest(from)
  const pending = await collect(client.admin.pending.list({}, { limit: 1000 }))
  const found = pending.filter(({ type, ip_address: address }) => type === 'enroll' && holds(address))
  if (found.length === 0)
    throw new CliError('enrollment_not_found', 'No pending enrollment came from there.', {
      hint: 'List what is pending, and where it came from, with `mayfly pending`.',
    })
  const what = found.length === 1 ? '1 enrollment' : `${found.length} enrollments`
  const otherwise = 'Use --yes to reject them without a question.'
  const question = `Reject ${what} from ${from}?`
  await confirmed(context, isSure, question, { otherwise, no: 'Nothing was rejected.' })
  const rejected: PendingEnrollment[] = []
  for (const { id } of found) rejected.push(await client.admin.pending.reject(id, { reason }))
  await context.out.show(rejected, () => `Rejected ${what} from ${from}.`)
}

function networkTest(from: string): (address: string | null) => boolean {
  const [address = '', prefix, ...rest] = from.split('/')
  const version = isIP(address)
  const most = version === 4 ? 32 : 128
  const bits = prefix === undefined ? most : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (version === 0 || rest.length > 0 || !(bits <= most))
    throw usage('The value of --from is neither an address nor a network, such as 2001:db8:1::/48.')
  const list = new BlockList()
  list.addSubnet(address, bits, version === 4 ? 'ipv4' : 'ipv6')
  return (one) => {
    const kind = isIP(one ?? '')
    return kind !== 0 && list.check(one ?? '', kind === 4 ? 'ipv4' : 'ipv6')
  }
}
