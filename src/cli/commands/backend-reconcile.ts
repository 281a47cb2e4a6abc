import type { Reconciled } from '../../client/wire.ts'
import { ADMIN } from '../admin/verbs.ts'
import { CliError } from '../frame/failure.ts'
import { flag, yesTo } from '../frame/options.ts'
import { table } from '../frame/output.ts'
import { confirmed } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { openAdminClient } from '../session/admin.ts'

type Admin = Awaited<ReturnType<typeof openAdminClient>>['admin']
type Account = Reconciled['accounts'][number]

/** All replies together. */
interface Result {
  readonly name: string
  readonly seen: number
  readonly accounts: readonly Account[]
}

export const verb = defineVerb({
  description:
    'Lists the accounts at an upstream that carry a name of Mayfly and that no living credential owns: left behind by credentials that were issued after a backup that has been restored, for example. With --revoke it ends them. The accounts of another Mayfly on the same upstream look the same, so never use --revoke where there is another one, nor on a trial copy of this one.',
  arguments: [{ name: '<name>', description: 'the backend', values: 'backends' }],
  options: { revoke: flag('end these accounts'), ...yesTo('do not ask') },
  examples: {
    'mayfly backend reconcile orders': 'only look',
    'mayfly backend reconcile orders --revoke': 'look, ask, then end them',
  },
  json: async () => {
    const [{ Type }, { Reconciled }] = await Promise.all([
      import('typebox'),
      import('../../api/admin-backends.ts'),
    ])
    return Type.Omit(Reconciled, ['next_cursor'])
  },
  ...ADMIN,
  run: async (context, { revoke = false, yes = false }, name) => {
    const { admin } = await openAdminClient(context)
    let result: Result | undefined
    if (!revoke || !yes) result = await readAll(context, admin, name, false)
    if (revoke && (result === undefined || result.accounts.length > 0)) {
      if (result !== undefined) await requireConfirmed(context, result)
      result = await readAll(context, admin, name, true)
    }
    if (result === undefined) return
    const { seen, accounts } = result
    await context.out.show(result, () => describe(accounts, context.now()))
    const failed = accounts.filter(({ outcome }) => outcome === 'failed').length
    if (failed > 0)
      throw new CliError(
        'backend_error',
        `The upstream did not end ${failed} of ${counted(accounts.length)}.`,
        {
          hint: 'The log of the server says why. Run the command again to try them again.',
        },
      )
    if (!context.out.isJson) context.out.note(summary(seen, accounts.length, revoke))
  },
})

async function requireConfirmed(context: Context, { name, accounts }: Result): Promise<void> {
  const question = `End ${counted(accounts.length)} at ${name} that this Mayfly has no credential for? Those of another Mayfly would be among them.`
  const otherwise = 'Use --yes to end them without confirmation.'
  await confirmed(context, false, question, { otherwise, no: 'Nothing was ended.' })
}

/** An account that could not be ended may come twice: the last outcome counts. */
async function readAll(context: Context, admin: Admin, name: string, revoke: boolean): Promise<Result> {
  const accounts = new Map<string, Account>()
  let seen = 0
  for (let cursor: string | undefined; ; ) {
    const body = { revoke: revoke || undefined, cursor }
    const reply: Reconciled = await whileWaiting(
      context,
      `Comparing the accounts: ${seen} seen, ${accounts.size} ${revoke ? 'ended' : 'found'}`,
      admin.backends.reconcile(name, body, { signal: context.signal }),
    )
    seen += reply.seen
    for (const account of reply.accounts) accounts.set(account.credential_id, account)
    if (reply.next_cursor === null) return { name: reply.name, seen, accounts: [...accounts.values()] }
    cursor = reply.next_cursor
    context.out.progress(`${seen} accounts seen, ${accounts.size} ${revoke ? 'ended' : 'found'}`)
  }
}

function describe(accounts: readonly Account[], now: number): string {
  if (accounts.length === 0) return ''
  return table(
    ['CREDENTIAL', 'EXPIRES', 'OUTCOME'],
    accounts.map(({ credential_id, expires_at, outcome }) => [
      credential_id,
      expires_at === undefined ? 'unknown' : relative(expires_at, now),
      outcome,
    ]),
  )
}

function summary(seen: number, found: number, revoked: boolean): string {
  const of = `${counted(seen)} seen`
  if (found === 0) return `${of}; a living credential owns each.`
  if (revoked) return `${of}; ended ${found} that no credential owned.`
  return `${of}; no credential owns ${found} of them. End these with --revoke, unless another Mayfly uses this upstream.`
}

const counted = (accounts: number) => `${accounts} ${accounts === 1 ? 'account' : 'accounts'}`
