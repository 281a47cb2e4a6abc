import { resolve } from 'node:path'
import { failureOf, usage } from '../frame/failure.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { endOf } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { writePrivateFile } from '../session/private-file.ts'
import { givenOf } from '../session/session.ts'
import { heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { needJwt } from '../tools/parts.ts'
import { REQUEST_OPTIONS, type RequestOptions, requestOf } from '../tools/request.ts'

const TYPES = ['urn:ietf:params:oauth:token-type:id_token', 'urn:ietf:params:oauth:token-type:jwt'] as const

/** AIP-4117 and the README of google-auth-library define how Google's libraries call an executable. */
export const verb = defineVerb({
  description:
    'Answers as the executable source of a workload identity pool (external account credentials of Google Cloud). The backend must be of kind jwt, with an audience that the provider of the pool allows. Libraries run this only if GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1.',
  options: REQUEST_OPTIONS,
  examples: [
    { command: 'mayfly gcp-credential --backend gcp', about: 'what a library runs' },
    {
      command:
        'gcloud iam workload-identity-pools create-cred-config PROVIDER --service-account EMAIL --executable-command "/usr/bin/mayfly gcp-credential --backend gcp" --output-file gcp.json',
      about: 'write the configuration that GOOGLE_APPLICATION_CREDENTIALS then names',
    },
  ],
  json: '{version: 1, success: true, token_type, id_token, expiration_time} or {version: 1, success: false, code, message}, with or without --json',
  exits: [3, 4, 5],
  run: async (context, options) => {
    try {
      const answer = await answerFor(context, options)
      await keepAnswer(context, answer)
      await context.out.json(answer)
    } catch (error) {
      // Libraries show the message from standard output; the exit code is not 0 either.
      const { code, message } = failureOf(error)
      if (message !== '') await context.out.json({ version: 1, success: false, code, message })
      throw error
    }
  },
})

async function answerFor(context: Context, options: RequestOptions): Promise<object> {
  const type = typeFor(givenOf(context.env['GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE']))
  const request = requestOf(options)
  const session = await openAgentSession(context)
  return heldAnswer(context, session, request, RENEW_BEFORE_MS.gcp, (credential) => ({
    version: 1,
    success: true,
    token_type: type,
    id_token: needJwt(credential, 'Google Cloud'),
    expiration_time: Math.floor(endOf(credential) / 1_000),
  }))
}

/** The type that the configuration names. */
function typeFor(requested: string | undefined): string {
  if (requested === undefined) return TYPES[0]
  const known = TYPES.find((one) => one === requested)
  if (known !== undefined) return known
  throw usage(
    'The credential configuration asks for an unsupported type of token.',
    `Set its subject_token_type to ${TYPES[0]}.`,
  )
}

/** If the configuration names an output file, the library reads it before it runs us again. */
async function keepAnswer(context: Context, answer: object): Promise<void> {
  const file = givenOf(context.env['GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE'])
  if (file !== undefined) await writePrivateFile(resolve(context.cwd, file), JSON.stringify(answer))
}
