import { hasRequest, jobOf, requestToken } from './actions.ts'
import { given, type IdentitySource } from './source.ts'

const FACTS = {
  name: 'github',
  title: 'GitHub Actions',
  needs: 'a job with `permissions: id-token: write`, which has ACTIONS_ID_TOKEN_REQUEST_URL',
}

/**
 * The request: docs.github.com/en/actions/reference/security/oidc, "Methods for requesting the OIDC token". GitHub signs a
 * new token for each request.
 */
export const github: IdentitySource = {
  ...FACTS,
  isHere: (context) => given(context, 'FORGEJO_ACTIONS') === undefined && hasRequest(context),
  workload: jobOf,
  token: (context, audience, options) => requestToken(context, FACTS, audience, options),
}
