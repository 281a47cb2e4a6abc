import { CliError } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { endOf, type HeldCredential } from '../session/held-credential.ts'
import { toTimestamp } from '../tools/held.ts'
import { needOneLine, needPart, partOf } from '../tools/parts.ts'

const TOOL = 'AWS'

interface Keys {
  readonly id: string
  readonly secret: string
  readonly session: string | undefined
  readonly end: string
}

function keysOf(credential: HeldCredential): Keys {
  const oneLine = (text: string) => needOneLine(credential, text, TOOL)
  const session = partOf(credential, 'session_token')
  return {
    id: oneLine(needPart(credential, 'access_key_id', TOOL)),
    secret: oneLine(needPart(credential, 'secret_access_key', TOOL)),
    session: session === undefined ? undefined : oneLine(session),
    end: toTimestamp(endOf(credential)),
  }
}

/** The output of `credential_process`. Throws `CliError` for a credential that is not for AWS. */
export function processAnswer(credential: HeldCredential): Record<string, unknown> {
  const { id, secret, session, end } = keysOf(credential)
  return {
    Version: 1,
    AccessKeyId: id,
    SecretAccessKey: secret,
    ...(session === undefined ? {} : { SessionToken: session }),
    Expiration: end,
  }
}

/** The reply of the container endpoint, where the session token is called `Token` and is required. */
export function endpointAnswer(credential: HeldCredential): Record<string, string> {
  const { id, secret, session, end } = keysOf(credential)
  if (session !== undefined)
    return { AccessKeyId: id, SecretAccessKey: secret, Token: session, Expiration: end }
  throw new CliError('wrong_backend', `Backend ${credential.backend} gives no session_token.`, {
    hint: 'Use `mayfly aws credential-process`, which does not need one.',
  })
}

/** The region of the backend, as `mayfly run` sets it, unless the user has chosen one. */
export function regionFor(credential: HeldCredential, env: Surroundings['env']): Record<string, string> {
  const region = partOf(credential, 'region')
  if (region === undefined || !/^[a-z0-9-]{1,40}$/.test(region)) return {}
  const isChosen = ['AWS_REGION', 'AWS_DEFAULT_REGION'].some((name) => (env[name] ?? '') !== '')
  return isChosen ? {} : { AWS_REGION: region, AWS_DEFAULT_REGION: region }
}
