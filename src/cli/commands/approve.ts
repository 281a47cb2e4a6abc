import type { PendingEnrollment } from '../../client/wire.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { chooseRequest, describePending, isRequestId } from '../admin/pending.ts'
import { ADMIN } from '../admin/verbs.ts'
import { noteWarnings } from '../admin/warnings.ts'
import { CliError, EXIT, usage } from '../frame/failure.ts'
import { flag, many, text, type ValuesOf, yesTo } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

const OPTIONS = {
  scope: many('<scope>', 'grant this scope instead of those requested; may be repeated'),
  expiresIn: text('<duration>', 'lifetime of the agent, or of the extra scopes'),
  note: text('<text>', 'a note to record with the decision'),
  fingerprint: text('<text>', 'approve only if the key has this fingerprint'),
  audience: many('<audience>', 'an audience that the agent may request tokens for; may be repeated'),
  replace: flag('delete the agent that has this name, with its credentials'),
  ...yesTo('do not ask for confirmation; needs the id or the fingerprint of an enrollment'),
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    'Shows an enrollment, a request for more scopes or the claim of an agent of a platform, asks for confirmation, and approves it. A claim gets the scopes that you name with --scope. At a terminal, it offers a choice if you give neither id nor name. Compare the key fingerprint with the one that the agent shows: the holder of that key becomes the agent.',
  arguments: [{ name: '[request]', description: 'its id, or the name of its agent', values: 'requests' }],
  options: OPTIONS,
  examples: {
    'mayfly approve': 'choose among those that are pending',
    'mayfly approve reporter': 'show it, then decide',
    'mayfly approve enr_01k3vq8m5xn6w7r2t9y4u1i0pa --scope orders:read --expires-in 8h --yes --fingerprint Xyz…':
      'in a script: fewer scopes, for a working day',
  },
  json: async () => (await import('../../api/enrollment.ts')).PendingEnrollment,
  ...ADMIN,
  run: async (context, options, given) => {
    const client = await openAdminClient(context)
    const request = await chooseRequest(context, client, given, 'approve')
    if (options.fingerprint !== undefined) checkFingerprint(request, options.fingerprint)
    else if (options.yes === true) checkIdentified(request, given)
    const { scope, expiresIn, note, audience, replace } = options
    if (request.type === 'claim' && scope === undefined) throw asksForNothing(request)
    if (request.name_taken === true && replace !== true) throw nameTaken(request)
    if (options.yes !== true) {
      context.out.note(describePending(request, context.now()))
      const otherwise = 'Look at it with `mayfly pending ID`, then use --yes.'
      const hint = `Reject it with \`mayfly reject ${shellWord(request.id)}\`.`
      const no = 'Nothing was approved.'
      await confirmed(context, false, question(request, options), { otherwise, no, hint })
    }
    const decision = { scopes: scope, expires_in: expiresIn, note, audiences: audience, replace }
    const approved = await client.admin.pending.approve(request.id, decision)
    await context.out.show(
      approved,
      () => `Approved ${approved.name}: ${approved.scopes.join(', ') || '(no scopes)'}.`,
    )
    if (!context.out.isJson) noteWarnings(context, approved)
  },
})

/** Anybody may enroll under any name, so a name alone does not say whose key becomes the agent. */
function checkIdentified({ type, name }: PendingEnrollment, given: string | undefined): void {
  if (type !== 'enroll' || (given !== undefined && isRequestId(given))) return
  throw usage(
    `Anybody may have enrolled as ${name}.`,
    'Give the fingerprint that the agent shows with --fingerprint, give the id, or omit --yes.',
  )
}

function checkFingerprint({ public_key_fingerprint: actual }: PendingEnrollment, expected: string): void {
  if (actual === null) throw usage('This request has no key.', 'Omit --fingerprint.')
  if (actual !== expected.trim())
    throw new CliError(
      'fingerprint_mismatch',
      `The key of this enrollment has another fingerprint: ${actual}.`,
      {
        exit: EXIT.failed,
        hint: 'Nothing was approved. Reject it unless you know whose key it is.',
      },
    )
}

function asksForNothing({ id }: PendingEnrollment): CliError {
  return usage(
    'An agent of a platform asks for no scopes.',
    `Look at it with \`mayfly pending ${shellWord(id)}\`, and say with --scope what you give it.`,
  )
}

function nameTaken({ id: given, name }: PendingEnrollment): CliError {
  const id = shellWord(given)
  return new CliError('conflict', `An agent called ${name} exists.`, {
    hint: `Delete it and admit this one with \`mayfly approve ${id} --replace\`, or reject it with \`mayfly reject ${id}\`.`,
  })
}

function question(request: PendingEnrollment, { scope, expiresIn, replace }: Options): string {
  const first =
    replace === true && request.name_taken === true
      ? `Delete the agent ${request.name}, and approve`
      : 'Approve'
  const scopes =
    scope === undefined ? '' : ` with ${scope.join(', ')}${request.type === 'claim' ? '' : ' instead'}`
  const time = expiresIn === undefined ? '' : ` for ${expiresIn}`
  return `${first} ${request.name}${scopes}${time}?`
}
