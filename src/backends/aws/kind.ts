import { unsupported } from '../../domain/backend-error.ts'
import { accountName } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { rotationOf } from './access-keys.ts'
import { type Config, config, requireConsistent } from './config.ts'
import { canGive, isAwsScope, sessionPolicy } from './scopes.ts'
import { assumeRole, LONGEST_S, SHORTEST_S, tryRole } from './sts.ts'
import { usesOf } from './uses.ts'

/** Sessions of one IAM role, narrowed by a session policy. STS cannot end one session. */
export const aws = defineKind({
  type: 'aws',
  title: 'AWS (STS)',
  config,
  limits: {
    minTtlMs: SHORTEST_S * 1_000,
    maxTtlMs: LONGEST_S * 1_000,
    why: 'AWS STS issues sessions of 15 minutes to 12 hours',
  },
  revocation: 'expiry_only',
  scopes: {
    valid: isAwsScope,
    gives: canGive,
    forms: [
      { form: 's3/<bucket>:read', gives: 'list a bucket and read its objects' },
      { form: 's3/<bucket>:write', gives: 'list a bucket, and read, write and delete its objects' },
      { form: 's3/<bucket>/<prefix>*:read', gives: 'do so for the keys that begin with a prefix' },
      { form: 'policy/<name>', gives: 'do what a session policy of the backend allows' },
      { form: '*', gives: 'do all that the role may do' },
    ],
    help:
      's3/<bucket>:read, s3/<bucket>:write, or with a key: s3/<bucket>/<key>:read, where * at its end stands for any ending; ' +
      'policy/<name> for a session policy of the backend; * for all that the role may do.',
  },
  environment: {
    AWS_ACCESS_KEY_ID: '{access_key_id}',
    AWS_SECRET_ACCESS_KEY: '{secret_access_key}',
    AWS_SESSION_TOKEN: '{session_token}',
    AWS_REGION: '{region}',
    AWS_DEFAULT_REGION: '{region}',
  },
  uses: usesOf,
  validate: requireConsistent,
  open,
})

async function open(settings: Config, host: Host): Promise<Opened> {
  const rotation = rotationOf(settings, host)
  return {
    async check(signal) {
      await tryRole(settings, host, signal)
      return []
    },
    issue: (request, signal) => issue(settings, host, request, signal),
    ...(rotation === undefined ? {} : { rotation }),
  }
}

async function issue(
  settings: Config,
  host: Host,
  { credentialId, agent, scopes, expiresAt }: IssueRequest<unknown>,
  signal: AbortSignal,
): Promise<Issued> {
  if (!scopes.every(isAwsScope)) throw unsupported('A scope is not one of this kind.')
  const name = sessionName(credentialId, agent.name)
  const policy = sessionPolicy(settings, scopes)
  const seconds = Math.max(SHORTEST_S, Math.floor((expiresAt - host.now()) / 1_000))
  const session = await assumeRole(settings, host, { name, seconds, policy }, signal)
  return {
    fields: {
      access_key_id: session.accessKeyId,
      secret_access_key: session.secretAccessKey,
      session_token: session.sessionToken,
      region: settings.region,
    },
    upstreamExpiresAt: session.expiresAt,
    facts: { role_session_name: name },
  }
}

/**
 * `mf_`, the body of the credential's id and the agent's name, cut to what STS takes: 2 to 64 of [\w+=,.@-]. CloudTrail shows it
 * in the ARN of the session.
 */
function sessionName(credentialId: string, agentName: string): string {
  const plain = agentName.replace(/[^A-Za-z0-9_+=,.@-]/g, '-')
  return `${accountName(credentialId)}-${plain}`.slice(0, 64)
}
