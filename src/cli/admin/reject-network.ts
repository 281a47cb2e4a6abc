import { BlockList, isIP } from 'node:net'
import type { Client } from '../../client/client.ts'
import type { PendingEnrollment, Rejection } from '../../client/wire.ts'
import { collect } from '../frame/collect.ts'
import { CliError, usage } from '../frame/failure.ts'
import { present } from '../frame/present.ts'
import { confirmed } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'

interface NetworkRejection {
  readonly from: string
  readonly reason: string | undefined
  readonly isSure: boolean
}

/** Rejects every pending enrollment that came from an address or a network, and says what remains. Throws `CliError`. */
export async function rejectNetwork(
  context: Context,
  client: Client,
  rejection: NetworkRejection,
): Promise<void> {
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
  for (const { id } of found)
    rejected.push(await client.admin.pending.reject(id, present<Rejection>({ reason })))
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
