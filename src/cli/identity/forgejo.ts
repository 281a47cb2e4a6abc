import { hasRequest, jobOf, requestToken } from './actions.ts'
import { given, type IdentitySource } from './source.ts'

const FACTS = {
  name: 'forgejo',
  title: 'Forgejo Actions',
  needs: 'a job with `enable-openid-connect: true`, which has ACTIONS_ID_TOKEN_REQUEST_URL',
}

/**
 * The request is that of GitHub (forgejo.org/docs/next/user/actions/security-openid-connect); its runner sets
 * FORGEJO_ACTIONS in each job.
 */
export const forgejo: IdentitySource = {
  ...FACTS,
  isHere: (context) => given(context, 'FORGEJO_ACTIONS') !== undefined && hasRequest(context),
  workload: jobOf,
  token: (context, audience, options) => requestToken(context, FACTS, audience, options),
}
