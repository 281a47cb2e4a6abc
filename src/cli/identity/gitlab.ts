import { given, type IdentitySource, noToken } from './source.ts'
import { workloadOf } from './token.ts'

const VARIABLE = 'MAYFLY_ID_TOKEN'
const FACTS = {
  name: 'gitlab',
  title: 'GitLab CI',
  needs: `\`id_tokens: {${VARIABLE}: {aud: …}}\` in the job, which puts a token into that variable`,
}

/**
 * GitLab signs the token before the job starts, for the audience that `.gitlab-ci.yml` names
 * (docs.gitlab.com/ci/secrets/id_token_authentication). So it is one token for the whole job.
 */
export const gitlab: IdentitySource = {
  ...FACTS,
  isHere: (context) => given(context, VARIABLE) !== undefined,
  workload: (context) => workloadOf(given(context, VARIABLE) ?? ''),
  token: async (context) => {
    const token = given(context, VARIABLE)
    if (token === undefined) throw noToken(FACTS.title, `it needs ${FACTS.needs}.`)
    return token
  },
}
