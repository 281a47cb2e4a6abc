import {
  CreateOpenIDConnectProviderCommand,
  CreateRoleCommand,
  IAMClient,
  PutRolePolicyCommand,
} from '@aws-sdk/client-iam'
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Config } from '../../src/backends/aws/config.ts'
import { aws } from '../../src/backends/aws/kind.ts'
import type { Issued } from '../../src/backends/kind.ts'
import { describeKind } from '../contract/kind-contract.ts'
import { never, newRequest, type OpenKind } from '../contract/open-kind.ts'
import { startPageWorld } from '../docs/backend-page.ts'
import { awsAt } from '../docs/upstreams/clouds.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { thumbprintOf } from '../support/aws-thumbprint.ts'
import { createTestHost } from '../support/host.ts'
import { type RgwServer, type RgwUser, startRgw } from '../support/rgw-server.ts'
import { isInstalled } from '../support/run-program.ts'

let rgw: RgwServer
let app: TestApp
let user: RgwUser
beforeAll(async () => {
  rgw = await startRgw()
  app = await startApp({ ownIssuer: true })
  user = await rgw.createUser('mayfly')
  const s3 = s3Of(rgw.root)
  for (const Bucket of ['reports', 'secret']) {
    await s3.send(new CreateBucketCommand({ Bucket }))
    await s3.send(new PutObjectCommand({ Bucket, Key: 'a/1', Body: 'one' }))
  }
  await createRole('by-key', { AWS: ['arn:aws:iam:::user/mayfly'] }, 'sts:AssumeRole')
  await trustIssuer()
}, 180_000)
afterAll(async () => {
  await app?.close()
  await rgw?.stop()
})

const at = () => ({ endpoint: rgw.endpoint, region: 'us-east-1' })
const s3Of = (credentials: RgwUser & { sessionToken?: string }, systemClockOffset = 0) =>
  new S3Client({ ...at(), credentials, forcePathStyle: true, maxAttempts: 1, systemClockOffset })
const keysOf = ({ fields = {} }: Pick<Issued, 'fields'>) => ({
  accessKeyId: String(fields['access_key_id']),
  secretAccessKey: String(fields['secret_access_key']),
  sessionToken: String(fields['session_token']),
})
const s3With = (issued: Pick<Issued, 'fields'>) => s3Of(keysOf(issued))
const iam = () => new IAMClient({ ...at(), credentials: rgw.root })

async function createRole(name: string, principal: object, action: string, condition: object = {}) {
  const trust = { Effect: 'Allow', Principal: principal, Action: [action], ...condition }
  const RoleName = name
  const document = (statement: object) => JSON.stringify({ Version: '2012-10-17', Statement: [statement] })
  await iam().send(new CreateRoleCommand({ RoleName, Path: '/', AssumeRolePolicyDocument: document(trust) }))
  const all = { Effect: 'Allow', Action: 's3:*', Resource: 'arn:aws:s3:::*' }
  await iam().send(new PutRolePolicyCommand({ RoleName, PolicyName: 'all', PolicyDocument: document(all) }))
}

/** As the page says: the provider is Mayfly's issuer, by the fingerprint of the certificate in its JWKS. */
async function trustIssuer() {
  await iam().send(
    new CreateOpenIDConnectProviderCommand({
      Url: app.url,
      ClientIDList: ['sts.amazonaws.com'],
      ThumbprintList: [await thumbprintOf(app.url)],
    }),
  )
  const provider = app.url.replace(/^https?:\/\//, '')
  const federated = { Federated: [`arn:aws:iam:::oidc-provider/${provider}`] }
  const condition = { Condition: { StringEquals: { [`${provider}:app_id`]: 'sts.amazonaws.com' } } }
  await createRole('by-token', federated, 'sts:AssumeRoleWithWebIdentity', condition)
}

function settings(overrides: Partial<Config> = {}): Config {
  const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = user
  const role_arn = 'arn:aws:iam:::role/by-key'
  return {
    role_arn,
    region: 'us-east-1',
    endpoint: rgw.endpoint,
    local: true,
    access_key_id,
    secret_access_key,
    ...overrides,
  }
}

async function open(given: Partial<Config> = {}) {
  const { host } = createTestHost('cloud')
  return aws.open(settings(given), host)
}

describeKind('aws, by an access key', async (): Promise<OpenKind> => {
  const { host, logged } = createTestHost('cloud')
  return {
    kind: aws as unknown as OpenKind['kind'],
    backend: await aws.open(settings(), host),
    config: settings(),
    scopes: ['s3/reports:read'],
    logged,
    unreachable: () => aws.open(settings({ endpoint: 'http://127.0.0.1:1' }), host),
    hostile: (endpoint) => aws.open(settings({ endpoint }), host),
    probe: {
      async use(issued) {
        const { Contents } = await s3With(issued).send(new ListObjectsV2Command({ Bucket: 'reports' }))
        return Contents?.[0]?.Key === 'a/1'
      },
      expiresAt: async (issued) => issued.upstreamExpiresAt ?? 0,
    },
    close: async () => {},
  }
})

describe('a session at the gateway', () => {
  const request = { Bucket: 'reports', Key: 'a/1' }
  const denied = { name: 'AccessDenied' }

  it('reads what its scope names, and nothing else', async () => {
    const backend = await open()
    const s3 = s3With(
      await backend.issue({ ...newRequest(['s3/reports:read'], { ttlMs: 900_000 }), params: {} }, never()),
    )
    const { Body } = await s3.send(new GetObjectCommand(request))
    expect(await Body?.transformToString()).toBe('one')
    await expect(s3.send(new PutObjectCommand({ ...request, Body: 'two' }))).rejects.toMatchObject(denied)
    await expect(s3.send(new DeleteObjectCommand(request))).rejects.toMatchObject(denied)
    await expect(s3.send(new GetObjectCommand({ ...request, Bucket: 'secret' }))).rejects.toMatchObject(
      denied,
    )
    await expect(s3.send(new ListObjectsV2Command({ Bucket: 'secret' }))).rejects.toMatchObject(denied)
  })

  it('writes below a prefix', async () => {
    const backend = await open()
    const asked = newRequest(['s3/reports/new/*:write'], { ttlMs: 900_000 })
    const s3 = s3With(await backend.issue({ ...asked, params: {} }, never()))
    await s3.send(new PutObjectCommand({ ...request, Key: 'new/1', Body: 'x' }))
    await expect(s3.send(new PutObjectCommand({ ...request, Body: 'x' }))).rejects.toMatchObject(denied)
  })

  it('may do nothing without scopes, and all that the role may with *', async () => {
    const backend = await open()
    const issue = async (scopes: string[]) =>
      s3With(await backend.issue({ ...newRequest(scopes, { ttlMs: 900_000 }), params: {} }, never()))
    const none = await issue([])
    await expect(none.send(new GetObjectCommand(request))).rejects.toMatchObject(denied)
    await (await issue(['*'])).send(new GetObjectCommand({ ...request, Bucket: 'secret' }))
  })

  it('names what is wrong with the key, the role and the trust', async () => {
    const check = async (given: Partial<Config>) => (await open(given)).check(never())
    await expect(check({})).resolves.toEqual([])
    // The gateway says of a wrong signature what it says of a trust policy that does not fit.
    await expect(check({ secret_access_key: 'wrong' })).rejects.toMatchObject({ fault: 'denied' })
    const { accessKeyId, secretAccessKey } = await rgw.createUser('stranger')
    const stranger = { access_key_id: accessKeyId, secret_access_key: secretAccessKey }
    await expect(check(stranger)).rejects.toThrow('trust policy')
    await expect(check({ role_arn: 'arn:aws:iam:::role/none' })).rejects.toThrow('role')
  })
})

it('says that a gateway before Squid does not replace access keys', async () => {
  const { rotation } = await open()
  await expect(rotation?.propose(never())).rejects.toMatchObject({
    fault: 'misconfigured',
    message: expect.stringContaining('does not offer'),
  })
})

describe('without a stored key', () => {
  it("becomes the role with Mayfly's own id token, whose keys the gateway fetches itself", async () => {
    const { role_arn, region, endpoint, local } = settings({ role_arn: 'arn:aws:iam:::role/by-token' })
    const config = { role_arn, region, endpoint, local }
    const made = await app.local.post('/v1/admin/backends', { type: 'aws', name: 'cloud', config })
    expect(made).toMatchObject({ status: 200 })
    const agent = await app.newAgent({ scopes: ['cloud:s3/reports:read'] })
    const reply = await agent.client.post('/api/v1/credentials', { backend: 'cloud', ttl: '15m' })
    expect(reply).toMatchObject({ status: 201 })
    const s3 = s3With({ fields: reply.body.fields })
    await s3.send(new GetObjectCommand({ Bucket: 'reports', Key: 'a/1' }))
    await expect(s3.send(new GetObjectCommand({ Bucket: 'secret', Key: 'a/1' }))).rejects.toMatchObject({
      name: 'AccessDenied',
    })
    const ended = await agent.client.delete(`/api/v1/credentials/${reply.body.id}`)
    expect(ended.body).toMatchObject({ revoked: true, upstream: 'expires' })
    await s3.send(new GetObjectCommand({ Bucket: 'reports', Key: 'a/1' }))
  })
})

describe.skipIf(!isInstalled('cc'))('past the end of a session (needs cc)', () => {
  afterAll(() => rgw.restartAhead(0))

  it('the gateway refuses it', async () => {
    const backend = await open()
    // The shortest of STS: too long for a test to wait.
    const asked = newRequest(['s3/reports:read'], { ttlMs: 900_000 })
    const issued = await backend.issue({ ...asked, params: {} }, never())
    const read = (keys: RgwUser, aheadMs: number) =>
      s3Of(keys, aheadMs).send(new GetObjectCommand({ Bucket: 'reports', Key: 'a/1' }))
    for (const seconds of [600, 901]) {
      await rgw.restartAhead(seconds)
      await read(rgw.root, seconds * 1_000)
      const reading = read(keysOf(issued), seconds * 1_000)
      if (seconds < 900) await reading
      // AWS itself says ExpiredToken.
      else await expect(reading).rejects.toMatchObject({ name: 'AccessDenied' })
    }
  })
})

it('has a page whose commands work', async () => {
  const world = await startPageWorld()
  await world.runPage('aws', awsAt({ ...rgw, user })).finally(world.close)
})
