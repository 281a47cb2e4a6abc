import { resolve } from 'node:path'
import { usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { endOf } from '../session/held-credential.ts'
import { writePrivateFile } from '../session/private-file.ts'
import { givenOf } from '../session/session.ts'
import { RENEW_BEFORE_MS } from '../tools/held.ts'
import { needJwt } from '../tools/parts.ts'
import { helperVerb } from './helper-verb.ts'

const TYPES = ['urn:ietf:params:oauth:token-type:id_token', 'urn:ietf:params:oauth:token-type:jwt'] as const

/** AIP-4117 and the README of google-auth-library define how Google's libraries call an executable. */
export const verb = helperVerb({
  name: 'gcp',
  description:
    'Answers as the executable source of a workload identity pool (external account credentials of Google Cloud). The backend must be of kind jwt, with an audience that the provider of the pool allows. Libraries run this only if GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1.',
  examples: {
    'mayfly helper gcp --backend gcp': 'what a library runs',
    'gcloud iam workload-identity-pools create-cred-config PROVIDER --service-account EMAIL --executable-command "/usr/bin/mayfly helper gcp --backend gcp" --output-file gcp.json':
      'write the configuration that GOOGLE_APPLICATION_CREDENTIALS then names',
  },
  json: '{version: 1, success: true, token_type, id_token, expiration_time} or {version: 1, success: false, code, message}, with or without --json',
  renewBeforeMs: RENEW_BEFORE_MS.gcp,
  answer: ({ env }) => {
    const type = typeFor(givenOf(env['GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE']))
    return (credential) => ({
      version: 1,
      success: true,
      token_type: type,
      id_token: needJwt(credential, 'Google Cloud'),
      expiration_time: Math.floor(endOf(credential) / 1_000),
    })
  },
  keep: keepAnswer,
  // Libraries show the message.
  refusal: ({ code, message }) => ({ version: 1, success: false, code, message }),
})

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
async function keepAnswer(context: Context, answer: string | object): Promise<void> {
  const file = givenOf(context.env['GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE'])
  if (file !== undefined) await writePrivateFile(resolve(context.cwd, file), JSON.stringify(answer))
}
