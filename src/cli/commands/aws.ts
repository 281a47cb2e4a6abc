import { processAnswer } from '../aws/answers.ts'
import { flag } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAgentSession } from '../session/open.ts'
import { callLine } from '../tools/call-line.ts'
import { heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { REQUEST_OPTIONS, requestFlags, requestOf } from '../tools/request.ts'

export const credentialProcess = defineVerb({
  description:
    'Prints credentials as `credential_process` of an AWS profile expects, from a cache while they live long enough. The backend must give access_key_id and secret_access_key, and may give session_token.',
  options: {
    ...REQUEST_OPTIONS,
    printConfig: flag('print the lines for ~/.aws/config instead of a credential'),
  },
  examples: [
    { command: 'mayfly aws credential-process --backend cloud', about: 'what an SDK runs' },
    {
      command: 'mayfly aws credential-process --backend cloud --print-config >> ~/.aws/config',
      about: 'a profile "mayfly": aws --profile mayfly s3 ls',
    },
  ],
  json: '{Version: 1, AccessKeyId, SecretAccessKey, SessionToken?, Expiration}, with or without --json',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const request = requestOf(options)
    const session = await openAgentSession(context)
    if (options.printConfig === true) {
      const words = ['aws', 'credential-process', ...requestFlags(options)]
      const line = callLine(context, session, words)
      await context.out.result(`[profile mayfly]\ncredential_process = ${line}`)
      return
    }
    await context.out.json(await heldAnswer(context, session, request, RENEW_BEFORE_MS.aws, processAnswer))
  },
})
