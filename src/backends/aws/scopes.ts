import { unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { type Config, partitionOf, statementsOf } from './config.ts'

/** Amazon S3 User Guide, "General purpose bucket naming rules"; a key may end with `*`. */
const BUCKET = /^s3\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/@+-]+\*?))?:(read|write)$/
const POLICY = /^policy\/([A-Za-z0-9._-]+)$/
const LONGEST = 2_048

export function isAwsScope(scope: string): boolean {
  return isScope(scope) && (scope === '*' || BUCKET.test(scope) || POLICY.test(scope))
}

/** Whether the configuration has the policy that the scope names. */
export function canGive({ policies }: Config, scope: string): boolean {
  const name = POLICY.exec(scope)?.[1]
  return name === undefined || (policies ?? []).some((one) => one.name === name)
}

interface Statement {
  readonly Effect: 'Allow' | 'Deny'
  readonly Action: string | readonly string[]
  readonly Resource: string | readonly string[]
  readonly Condition?: object
}

export const NOTHING: readonly Statement[] = [{ Effect: 'Deny', Action: '*', Resource: '*' }]

/**
 * The session policy: a session may do what both the role and this allow (IAM User Guide, "Session policies"). `undefined`: all
 * that the role may do. Throws `BackendError` (`unsupported`).
 */
export function sessionPolicy(settings: Config, scopes: readonly string[]): string | undefined {
  if (scopes.includes('*')) return undefined
  const statements = scopes.flatMap((scope) => statementsFor(settings, scope))
  const policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: statements.length === 0 ? NOTHING : statements,
  })
  if (policy.length <= LONGEST) return policy
  throw unsupported(
    `These scopes make a session policy of ${policy.length} characters, and AWS takes ${LONGEST}; request fewer.`,
  )
}

function statementsFor(settings: Config, scope: string): readonly unknown[] {
  const [, bucket, key, access] = BUCKET.exec(scope) ?? []
  if (bucket !== undefined) return bucketStatements(partitionOf(settings), bucket, key, access === 'write')
  const name = POLICY.exec(scope)?.[1]
  const own = settings.policies?.find((one) => one.name === name)
  if (own === undefined) throw unsupported('This backend has no policy of that name.')
  return statementsOf(own.policy) ?? []
}

function bucketStatements(
  partition: string,
  bucket: string,
  key: string | undefined,
  writes: boolean,
): readonly Statement[] {
  const arn = `arn:${partition}:s3:::${bucket}`
  const changes = writes ? ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'] : []
  const listing = key === undefined ? {} : { Condition: { StringLike: { 's3:prefix': key } } }
  return [
    { Effect: 'Allow', Action: ['s3:GetObject', ...changes], Resource: `${arn}/${key ?? '*'}` },
    { Effect: 'Allow', Action: 's3:ListBucket', Resource: arn, ...listing },
  ]
}
