import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import type { Config } from '../../../src/backends/aws/config.ts'
import { aws } from '../../../src/backends/aws/kind.ts'
import { usesOf } from '../../../src/backends/aws/uses.ts'
import { never, newRequest } from '../../contract/open-kind.ts'
import { type Certificates, makeCertificates } from '../../support/certificates.ts'
import { createTestHost } from '../../support/host.ts'
import { type RgwServer, type RgwUser, startRgw } from '../../support/rgw-server.ts'
import { type ClientWorld, type Credential, startClientWorld } from './client-world.ts'

export const OWN_ENDPOINT = 's3.acme.example'
const REGION = 'us-east-1'
const AWS_HOST = `s3.${REGION}.amazonaws.com`
const BUCKET = 'reports'
const OTHERS = ['sts', 'iam', 'secretsmanager'].map((name) => `${name}.${REGION}.amazonaws.com`)

/** A gateway that verifies signatures, and a session at it that the kind has issued. */
export interface AwsWorld {
  readonly rgw: RgwServer
  /** Who may become the role of the session. */
  readonly user: RgwUser
  readonly fields: Readonly<Record<string, string>>
  /** Children with an endpoint in the configuration, and with none: that of AWS. */
  readonly own: ClientWorld
  readonly aws: ClientWorld
  /** An endpoint of its own, for reading one bucket. */
  readonly narrow: ClientWorld
  close(): Promise<void>
}

export async function startAwsWorld(bytes?: number): Promise<AwsWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-aws-'))
  const hosts = [AWS_HOST, `${BUCKET}.${AWS_HOST}`, ...OTHERS]
  const certificates = makeCertificates(directory, OWN_ENDPOINT, ...hosts)
  const rgw = await startRgw({
    ...{ certificate: certificates.server, names: [OWN_ENDPOINT, AWS_HOST] },
    ...(bytes === undefined ? {} : { bytes }),
  })
  try {
    const at = { endpoint: rgw.endpoint, region: REGION, credentials: rgw.root }
    const user = await rgw.createUser('mayfly')
    await new S3Client({ ...at, forcePathStyle: true }).send(new CreateBucketCommand({ Bucket: BUCKET }))
    const fields = await issueSession(rgw, user, new IAMClient(at))
    const worldOf = (endpoint: string | undefined, names: readonly string[], scopes = ALL) =>
      startClientWorld(
        [credentialOf({ ...settingsOf(rgw), endpoint }, fields, scopes)],
        Object.fromEntries(names.map((name) => [name, rgw.tlsPort])),
        certificates satisfies Certificates,
      )
    const own = await worldOf(`https://${OWN_ENDPOINT}`, [OWN_ENDPOINT, ...hosts])
    const wide = await worldOf(undefined, [...hosts, OWN_ENDPOINT])
    const narrow = await worldOf(`https://${OWN_ENDPOINT}`, [OWN_ENDPOINT], [`s3/${BUCKET}:read`])
    const close = async () => {
      await Promise.all([own.close(), wide.close(), narrow.close()])
      await rgw.stop()
      await rm(directory, { recursive: true, force: true })
    }
    return { rgw, user, fields, own, aws: wide, narrow, close }
  } catch (error) {
    await rgw.stop()
    throw error
  }
}

/** The keys of the session are made by the real kind, at the real STS of the gateway. */
async function issueSession(rgw: RgwServer, user: RgwUser, iam: IAMClient): Promise<Record<string, string>> {
  const document = (statement: object) => JSON.stringify({ Version: '2012-10-17', Statement: [statement] })
  const trust = {
    Effect: 'Allow',
    Principal: { AWS: ['arn:aws:iam:::user/mayfly'] },
    Action: ['sts:AssumeRole'],
  }
  const role = { RoleName: 'work', Path: '/', AssumeRolePolicyDocument: document(trust) }
  await iam.send(new CreateRoleCommand(role))
  const all = { Effect: 'Allow', Action: 's3:*', Resource: 'arn:aws:s3:::*' }
  await iam.send(
    new PutRolePolicyCommand({ RoleName: 'work', PolicyName: 'all', PolicyDocument: document(all) }),
  )
  const keys = { access_key_id: user.accessKeyId, secret_access_key: user.secretAccessKey }
  const { host } = createTestHost('cloud')
  const backend = await aws.open({ ...settingsOf(rgw), ...keys }, host)
  const asked = newRequest([`s3/${BUCKET}:write`, `s3/${BUCKET}:read`], { ttlMs: 3_600_000 })
  const { fields = {} } = await backend.issue({ ...asked, params: {} }, never())
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))
}

function settingsOf(rgw: RgwServer): Config {
  const role_arn = 'arn:aws:iam:::role/work'
  return { role_arn, region: REGION, endpoint: rgw.endpoint, local: true }
}

const ALL: readonly string[] = [`s3/${BUCKET}:write`, '*']

/** The rules are those of the kind. */
function credentialOf(
  { endpoint, ...settings }: Omit<Config, 'endpoint'> & { readonly endpoint: string | undefined },
  fields: Readonly<Record<string, string>>,
  scopes: readonly string[],
): Credential {
  const config: Config = { ...settings, ...(endpoint === undefined ? {} : { endpoint }), local: false }
  return {
    ...{ name: 'cloud', type: 'aws', fields },
    uses: usesOf(config, scopes),
    env: ({ fields: given = {} }) => ({
      AWS_ACCESS_KEY_ID: String(given['access_key_id']),
      AWS_SECRET_ACCESS_KEY: String(given['secret_access_key']),
      AWS_SESSION_TOKEN: String(given['session_token']),
      AWS_REGION: REGION,
      AWS_DEFAULT_REGION: REGION,
      AWS_EC2_METADATA_DISABLED: 'true',
      // Otherwise the CLI calls s3.amazonaws.com.
      AWS_S3_US_EAST_1_REGIONAL_ENDPOINT: 'regional',
      // The gateway knows no checksums in trailers.
      AWS_REQUEST_CHECKSUM_CALCULATION: 'when_required',
      AWS_RESPONSE_CHECKSUM_VALIDATION: 'when_required',
    }),
  }
}
