import type { HttpUse, Place } from '../../domain/use.ts'
import { ALL, httpUse, READING, rules } from '../uses.ts'
import { type Config, PARTITIONS, partitionOf } from './config.ts'

/**
 * Signing names of services with operations that hand out credentials: keys and sessions of AWS, tokens, passwords, private keys
 * (the models of the AWS SDKs). The action is in a body or a header, so the service decides. EC2 is not among them, although
 * `CreateKeyPair` is one of its hundreds of operations: the policy of the role decides there.
 */
const HANDS_OUT =
  'sts iam sso sso-oauth awsssoportal awsssooidc signin cognito-identity cognito-idp identitystore rolesanywhere eks-auth s3express ' +
  'secretsmanager ssm acm acm-pca pca-connector-scep ecr ecr-public codeartifact codecatalyst codepipeline ' +
  'redshift redshift-serverless elasticmapreduce emr-containers lakeformation datazone finspace finspace-api connect ' +
  'gamelift deadline lightsail license-manager ec2-instance-connect iot iotwireless iotmanagedintegrations ' +
  'amplifyuibuilder bedrock-agentcore cloudwatch payment-cryptography apigateway appsync wafv2 wickr mediapackage ' +
  'quicksight thinclient'

/** Grants of S3 that answer with keys of a session, under the signing name of S3 ("GetDataAccess", "CreateSession"). */
const S3_KEYS = ['/v20180820/accessgrantsinstance/dataaccess/**']
/** Ceph and MinIO answer STS and IAM at the root of the host of S3, whatever the scope of the signature says. */
const OF_OTHER_SYSTEMS = ['/minio/**', '/admin/**']

const S3 = /^s3\/.*:(read|write)$/

export function usesOf(settings: Config, scopes: readonly string[]): readonly HttpUse[] {
  if (scopes.length === 0) return []
  const ofS3 = scopes.map((scope) => S3.exec(scope)?.[1])
  const methods = ofS3.every((access) => access === 'read') ? READING : ALL
  const place: Place = {
    in: 'sigv4',
    field: 'secret_access_key',
    keyId: 'access_key_id',
    token: 'session_token',
    ...(ofS3.includes(undefined) ? {} : { allow: ['s3'] }),
    deny: HANDS_OUT.split(' '),
  }
  // Keys of objects may hold anything.
  const parts = { places: [place], allow: rules(methods, ['/**'], { slashes: true }) }
  const domain = PARTITIONS[partitionOf(settings)]?.domain ?? 'amazonaws.com'
  const { endpoint, local, ca } = settings
  const own = endpoint !== undefined && URL.canParse(endpoint) ? new URL(endpoint) : undefined
  if (own === undefined || own.hostname.endsWith(`.${domain}`)) {
    const origin = `https://*.${domain}`
    return [{ protocol: 'http', name: 'aws', origin, local: false, ...parts, deny: rules(['*'], S3_KEYS) }]
  }
  const deny = [...rules(['POST'], ['/']), ...rules(['*'], [...S3_KEYS, ...OF_OTHER_SYSTEMS])]
  return httpUse('aws', { base: own.origin, local, ca }, { ...parts, deny })
}
