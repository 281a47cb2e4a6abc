import { shellLine } from '../git/wrapper.ts'
import { endOf, type HeldCredential } from '../session/held-credential.ts'
import { RENEW_BEFORE_MS, toTimestamp } from '../tools/held.ts'
import { needOneLine, needPart, partOf } from '../tools/parts.ts'
import { helperVerb } from './helper-verb.ts'

const TOOL = 'AWS'

export const verb = helperVerb({
  name: 'aws',
  description:
    'Prints credentials as `credential_process` of an AWS profile expects, from a cache while they live long enough. The backend must give access_key_id and secret_access_key, and may give session_token.',
  printed: 'print the lines for ~/.aws/config instead of a credential',
  examples: {
    'mayfly helper aws --backend cloud': 'what an SDK runs',
    'mayfly helper aws --backend cloud --print >> ~/.aws/config':
      'a profile "mayfly": aws --profile mayfly s3 ls',
  },
  json: '{Version: 1, AccessKeyId, SecretAccessKey, SessionToken?, Expiration}, with or without --json',
  renewBeforeMs: RENEW_BEFORE_MS.aws,
  answer: () => processAnswer,
  configure: ({ out }, call) => out.result(`[profile mayfly]\ncredential_process = ${shellLine(call)}`),
})

/** Throws `CliError` for a credential that is not for AWS. */
function processAnswer(credential: HeldCredential): object {
  const oneLine = (text: string) => needOneLine(credential, text, TOOL)
  const session = partOf(credential, 'session_token')
  return {
    Version: 1,
    AccessKeyId: oneLine(needPart(credential, 'access_key_id', TOOL)),
    SecretAccessKey: oneLine(needPart(credential, 'secret_access_key', TOOL)),
    ...(session === undefined ? {} : { SessionToken: oneLine(session) }),
    Expiration: toTimestamp(endOf(credential)),
  }
}
