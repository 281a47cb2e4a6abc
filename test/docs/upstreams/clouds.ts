import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { thumbprintOf } from '../../support/aws-thumbprint.ts'
import type { RgwServer, RgwUser } from '../../support/rgw-server.ts'
import type { StartUpstream } from '../backend-page.ts'

/** Ceph's gateway in the place of AWS, with the bucket `reports`: a real STS, IAM and S3, which has no account numbers. */
export const awsAt =
  ({ endpoint, root, user }: RgwServer & { readonly user: RgwUser }): StartUpstream =>
  async ({ cwd, mayfly }) => {
    const provider = mayfly.replace('http://', '')
    await writeFile(join(cwd, 'key'), `${user.accessKeyId}\t${user.secretAccessKey}\n`, { mode: 0o600 })
    return {
      env: {
        AWS_ACCESS_KEY_ID: root.accessKeyId,
        AWS_SECRET_ACCESS_KEY: root.secretAccessKey,
        AWS_DEFAULT_REGION: 'us-east-1',
      },
      programs: { aws: awsProgram(endpoint) },
      replace: [
        ['--client-id-list', `--thumbprint-list ${await thumbprintOf(mayfly)} --client-id-list`],
        // Ceph 16 has the audience under this name, and looks at no other claim; 17 has those of AWS, too.
        ['"mayfly.example.com:aud": "sts.amazonaws.com",', `"${provider}:app_id": "sts.amazonaws.com"}}}]}'`],
        [`\n      "mayfly.example.com:sub": "backend/cloud"}}}]}'`, ''],
        ['123456789012', ''],
        ['--region eu-west-1', `--region us-east-1 --endpoint ${endpoint} --local`],
      ],
      async verify(results) {
        expect(results.at(-1)?.output).toMatch(/ 3 1$/m)
      },
      stop: async () => {},
    }
  }

/** The AWS CLI behind it in PATH. Ceph 16 takes documents without spaces only. */
const awsProgram = (endpoint: string) => `
PATH=\${PATH#*:}
export PATH
for word; do
  shift
  case "$word" in '{'*) word=$(printf %s "$word" | jq -c .) ;; esac
  set -- "$@" "$word"
done
exec aws --endpoint-url ${endpoint} "$@"`
