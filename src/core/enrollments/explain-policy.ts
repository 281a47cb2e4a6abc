import { type Explanation, explainAdmission } from '../../domain/policy.ts'
import { requireScopes } from '../../domain/scope.ts'
import type { Core } from '../context.ts'
import { type AskedAdmission, boundsNote, judgeEnrollment } from './judge-enrollment.ts'

/** How an enrollment with this name and these scopes would be decided now. Records and counts nothing. Throws `invalid_request`. */
export async function explainPolicy(
  core: Pick<Core, 'identities' | 'store' | 'settings' | 'rates'>,
  asked: AskedAdmission,
): Promise<Explanation> {
  if (asked.scopes !== undefined) requireScopes(asked.scopes)
  const { admission, note } = await judgeEnrollment(core, asked)
  const bound =
    admission.decision === 'approve' && note === ''
      ? await boundsNote(core, admission.policy, 'wait')
      : undefined
  const explained = explainAdmission(core.settings.policies, asked, admission)
  const reason = [note, bound].filter(Boolean).join(' ')
  if (reason === '') return explained
  return { ...explained, reason, decision: 'wait', lifetimeMs: undefined }
}
