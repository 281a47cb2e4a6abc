import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig } from '../fields.ts'
import { guardedField, protectionField } from '../kind.ts'

const URL_FIELD = { minLength: 8, maxLength: 512, pattern: '^https?://[^\\s]+$' }
/** AWS Identity and Access Management, User Guide, "IAM ARNs"; Ceph's have an empty account. */
const ROLE_ARN = '^arn:[a-z0-9-]+:iam::[A-Za-z0-9]*:role/[\\w+=,.@/-]{1,512}$'

const example = { role_arn: 'arn:aws:iam::123456789012:role/reports', region: 'eu-west-1' }

export const config = Field.configOf(example, {
  role_arn: Field.upstream('Role that credentials are sessions of.', { maxLength: 640, pattern: ROLE_ARN }),
  region: Field.text('Region of STS, which agents get as theirs.', {
    minLength: 1,
    maxLength: 64,
    pattern: '^[a-z0-9-]+$',
    default: 'us-east-1',
  }),
  access_key_id: Type.Optional(
    Field.text('Access key that may assume the role. Leave it out to identify with an id token of Mayfly.', {
      minLength: 16,
      maxLength: 128,
      pattern: '^\\w+$',
    }),
  ),
  secret_access_key: Type.Optional(
    Field.secret('The secret of the access key.', { minLength: 1, maxLength: 256 }),
  ),
  audience: Type.Optional(
    Field.text('Audience of the id token; sts.amazonaws.com by default.', { minLength: 1, maxLength: 255 }),
  ),
  external_id: Type.Optional(
    Field.text('External id that the trust policy of the role asks for.', {
      minLength: 2,
      maxLength: 1224,
      pattern: '^[\\w+=,.@:/-]+$',
    }),
  ),
  policies: Type.Optional(
    Type.Array(
      Field.closed({
        name: Field.text('What scopes call it.', {
          minLength: 1,
          maxLength: 64,
          pattern: '^[A-Za-z0-9._-]+$',
        }),
        policy: Field.text('An IAM policy, as JSON.', { minLength: 2, maxLength: 2048 }),
      }),
      guardedField(
        protectionField({
          minItems: 1,
          maxItems: 32,
          description: 'Session policies of your own, which scopes name as policy/<name>.',
        }),
      ),
    ),
  ),
  // Mayfly's id token is sent there.
  endpoint: Type.Optional(
    Field.guarded(Field.upstream('Address of STS, where it is not the one of the region.', URL_FIELD)),
  ),
  local: Field.local('STS is on this machine or in its own network: permits loopback addresses.'),
  local_user: Field.localUser(),
  ca: Type.Optional(
    Field.protection('PEM of the certificate authority of `endpoint`.', { maxLength: 32_768 }),
  ),
})

export type Config = Static<typeof config>

interface Partition {
  /** How the names of its regions begin. */
  readonly regions: string
  readonly domain: string
  /** IAM is one service for all regions, at this host, and signs for this region. */
  readonly iam: readonly [host: string, region: string]
}

const partition = (
  regions: string,
  domain: string,
  region: string,
  host = `iam.${region}.${domain}`,
): Partition => ({ regions, domain, iam: [host, region] })

/** As in the AWS SDKs ("partitions.json", and the endpoint rules of IAM). Those before the last are told by their regions. */
export const PARTITIONS: Readonly<Record<string, Partition>> = {
  'aws-cn': partition('cn-', 'amazonaws.com.cn', 'cn-north-1'),
  'aws-us-gov': partition('us-gov-', 'amazonaws.com', 'us-gov-west-1', 'iam.us-gov.amazonaws.com'),
  'aws-eusc': partition('eusc-', 'amazonaws.eu', 'eusc-de-east-1'),
  'aws-iso': partition('us-iso-', 'c2s.ic.gov', 'us-iso-east-1'),
  'aws-iso-b': partition('us-isob-', 'sc2s.sgov.gov', 'us-isob-east-1'),
  'aws-iso-e': partition('eu-isoe-', 'cloud.adc-e.uk', 'eu-isoe-west-1'),
  'aws-iso-f': partition('us-isof-', 'csp.hci.ic.gov', 'us-isof-south-1'),
  aws: partition('', 'amazonaws.com', 'us-east-1', 'iam.amazonaws.com'),
}

export function endpointOf({ endpoint, region }: Config): string {
  if (endpoint !== undefined) return endpoint
  const found = Object.values(PARTITIONS).find(({ regions }) => region.startsWith(regions))
  return `https://sts.${region}.${found?.domain}/`
}

/** The part of an ARN that names the partition: aws, aws-cn. */
export function partitionOf({ role_arn: role }: Config): string {
  return role.split(':')[1] ?? 'aws'
}

/** Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent({
  access_key_id: id,
  secret_access_key: secret,
  policies,
  audience,
}: Config) {
  requireConfig(
    (id === undefined) === (secret === undefined),
    '"access_key_id" and "secret_access_key" go together.',
  )
  requireConfig(
    id === undefined || audience === undefined,
    '"audience" has no effect on an access key; leave one of them out.',
  )
  for (const { name, policy } of policies ?? []) {
    requireConfig(
      statementsOf(policy) !== undefined,
      `The policy "${name}" is not a JSON object with a list "Statement".`,
    )
  }
}

/** The statements of a policy document, or `undefined`. */
export function statementsOf(policy: string): readonly unknown[] | undefined {
  try {
    const { Statement: statements } = JSON.parse(policy)
    return Array.isArray(statements) && statements.length > 0 ? statements : undefined
  } catch {
    return undefined
  }
}
