import { describePending, findUndecided } from '../admin/pending.ts'
import { CliError, EXIT, usage } from '../frame/failure.ts'
import { plain } from '../frame/output.ts'
import { confirm } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

interface Options {
  readonly scope?: readonly string[]
  readonly expiresIn?: string
  readonly note?: string
  readonly fingerprint?: string
  readonly yes?: boolean
}

export const verb = defineVerb<Options, [id: string]>({
  description:
    'Approves an enrollment or a request for more scopes, after showing it and asking. Compare the key fingerprint with the one that the agent shows: whoever has that key becomes the agent.',
  arguments: [{ name: '<id>', description: 'as `mayfly pending` lists it' }],
  options: [
    {
      flags: '--scope <scope>',
      description: 'these instead of the asked ones; may be repeated',
      repeatable: true,
    },
    {
      flags: '--expires-in <duration>',
      description: 'the agent, or the extra scopes, end after this time',
    },
    { flags: '--note <text>', description: 'kept with the decision' },
    { flags: '--fingerprint <text>', description: 'approve only if the key has this fingerprint' },
    { flags: '-y, --yes', description: 'do not ask' },
  ],
  examples: [
    { command: 'mayfly approve enr_01k3vq8m5xn6w7r2t9y4u1i0pa', about: 'look at it, then decide' },
    {
      command:
        'mayfly approve enr_01k3vq8m5xn6w7r2t9y4u1i0pa --scope orders:read --expires-in 8h --yes --fingerprint Xyz…',
      about: 'with fewer scopes, for a working day, in a script',
    },
  ],
  json: async () => (await import('../../api/enrollment.ts')).PendingEnrollment,
  exits: [3, 4, 5],
  admin: true,
  run: async (context, options, id) => {
    const client = await openAdminClient(context)
    const request = await findUndecided(client, id)
    if (options.fingerprint !== undefined) checkFingerprint(request, options.fingerprint)
    const { scope, expiresIn, note } = options
    if (options.yes !== true) {
      context.out.note(plain(describePending(request)))
      const otherwise = 'Look at it with `mayfly pending ID`, then give --yes.'
      if (!(await confirm(context, question(request, scope, expiresIn), { otherwise })))
        throw new CliError('not_confirmed', 'Nothing was approved.', {
          hint: `Reject it with \`mayfly reject ${request.id}\`.`,
        })
    }
    const approved = await client.admin.pending.approve(request.id, {
      ...(scope === undefined ? {} : { scopes: [...scope] }),
      ...(expiresIn === undefined ? {} : { expires_in: expiresIn }),
      ...(note === undefined ? {} : { note }),
    })
    await context.out.show(
      approved,
      () => `Approved ${approved.name}: ${approved.scopes.join(', ') || '(no scopes)'}.`,
    )
  },
})

type Request = Awaited<ReturnType<typeof findUndecided>>

function checkFingerprint({ public_key_fingerprint: actual }: Request, expected: string): void {
  if (actual === null)
    throw usage('A request for more scopes has no key of its own.', 'Leave --fingerprint out.')
  if (actual !== expected.trim())
    throw new CliError('fingerprint_mismatch', `The key of this enrollment is another one: ${actual}.`, {
      exit: EXIT.failed,
      hint: 'Nothing was approved: reject it unless you know whose it is.',
    })
}

function question(
  request: Request,
  scope: readonly string[] | undefined,
  expiresIn: string | undefined,
): string {
  const scopes = scope === undefined ? '' : ` with ${scope.join(', ')} instead`
  const time = expiresIn === undefined ? '' : ` for ${expiresIn}`
  return `Approve ${plain(request.name)}${plain(scopes)}${plain(time)}?`
}
