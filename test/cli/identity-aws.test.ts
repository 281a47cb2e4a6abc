import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AwsV4Signer } from 'aws4fetch'
import { describe, expect, test } from 'vitest'
import { type Asked, type LookAlikeReply, tokenFor, useJobs } from './identity-support.ts'

const jobs = useJobs()
const { startSource: start } = jobs

describe('aws', () => {
  const KEYS = { AccessKeyId: 'AKIDEXAMPLE', SecretAccessKey: 'secret-key', Token: 'session-token' }
  const ENV_KEYS = {
    AWS_ACCESS_KEY_ID: KEYS.AccessKeyId,
    AWS_SECRET_ACCESS_KEY: KEYS.SecretAccessKey,
    AWS_SESSION_TOKEN: KEYS.Token,
    AWS_REGION: 'eu-central-1',
  }
  const sts = ({ body }: Asked) => {
    const token = tokenFor(new URLSearchParams(body).get('Audience.member.1'))
    return {
      body: `<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetWebIdentityTokenResult><WebIdentityToken>${token}</WebIdentityToken><Expiration>2030-01-01T00:00:00Z</Expiration></GetWebIdentityTokenResult></GetWebIdentityTokenResponse>`,
    }
  }
  const machine =
    (role = 'my-role', keys: object = KEYS) =>
    (asked: Asked): LookAlikeReply => {
      const { method, path, headers } = asked
      if (method === 'POST') return sts(asked)
      if (method === 'PUT')
        return { body: headers['x-aws-ec2-metadata-token-ttl-seconds'] === '60' ? 'imds-token' : '' }
      // IMDSv2 alone.
      if (headers['x-aws-ec2-metadata-token'] !== 'imds-token') return { status: 401 }
      if (path === '/latest/meta-data/placement/region') return { body: 'eu-central-1' }
      if (path === '/latest/meta-data/iam/security-credentials/') return { body: role }
      return path.endsWith(`/${role}`) ? { body: JSON.stringify(keys) } : { status: 404 }
    }

  test('asks STS, signed with the keys of the environment', async () => {
    const { server, source, logIn } = await start(sts)
    const env = { ...ENV_KEYS, AWS_ENDPOINT_URL_STS: `${source.url}/` }
    expect(await logIn(env, ['aws'])).toMatchObject({ code: 0 })
    const [asked] = source.got
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      Action: 'GetWebIdentityToken',
      Version: '2011-06-15',
      'Audience.member.1': server.url,
      SigningAlgorithm: 'ES384',
      DurationSeconds: '300',
    })
    const { headers } = asked as Asked
    expect(headers['x-amz-security-token']).toBe('session-token')
    // What arrived is what was signed.
    const again = await new AwsV4Signer({
      method: 'POST',
      url: `${source.url}/`,
      headers: { 'content-type': String(headers['content-type']) },
      body: asked?.body ?? '',
      accessKeyId: KEYS.AccessKeyId,
      secretAccessKey: KEYS.SecretAccessKey,
      sessionToken: KEYS.Token,
      service: 'sts',
      region: 'eu-central-1',
      datetime: String(headers['x-amz-date']),
    }).sign()
    expect(headers.authorization).toBe(again.headers.get('authorization'))
  })

  test('takes the role of the machine, and its region', async () => {
    const { source, logIn } = await start(machine())
    const env = { AWS_ENDPOINT_URL_STS: source.url, AWS_EC2_METADATA_SERVICE_ENDPOINT: source.url }
    expect(await logIn(env, ['aws'])).toMatchObject({ code: 0 })
    expect(source.got.at(-1)?.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/sts\/aws4_request/,
    )
  })

  test('takes the credentials of the container, with the token for them', async () => {
    const { source, logIn } = await start((asked) =>
      asked.method === 'GET' ? { body: JSON.stringify(KEYS) } : sts(asked),
    )
    await writeFile(join(jobs.home(), 'auth'), 'pod-token\n')
    const env = {
      AWS_REGION: 'eu-central-1',
      AWS_ENDPOINT_URL_STS: source.url,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(jobs.home(), 'auth'),
    }
    expect(await logIn(env, ['auto'])).toMatchObject({ code: 0, stderr: expect.stringContaining('by AWS.') })
    expect(source.got[0]).toMatchObject({
      path: '/v1/credentials',
      headers: expect.objectContaining({ authorization: 'pod-token' }),
    })
  })

  test.each([
    ['a role that is a path', machine('../../../x'), /the machine has no role/],
    ['credentials that are none', machine('r', { Code: 'Failed' }), /holds no credentials/],
    ['a key with a line break', machine('r', { ...KEYS, Token: 'a\nb' }), /holds no credentials/],
    ['no metadata service', () => ({ body: 'a b' }), /is not its metadata service/],
  ])('%s is refused', async (_, answer, words) => {
    const { server, source, logIn } = await start(answer)
    const env = {
      AWS_REGION: 'eu-central-1',
      AWS_ENDPOINT_URL_STS: source.url,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: source.url,
    }
    const { code, stderr } = await logIn(env, ['aws'])
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(words) })
    expect(server.got).toEqual([])
  })

  test.each(['evil.example.com/', 'eu-central-1.evil', 'x', ''])(
    'the region %j becomes no address',
    async (region) => {
      const { source, logIn } = await start(() => ({ status: 404 }))
      const env = { ...ENV_KEYS, AWS_REGION: region, AWS_EC2_METADATA_SERVICE_ENDPOINT: source.url }
      expect(await logIn(env, ['aws'])).toMatchObject({ code: 4 })
    },
  )

  test('keys of a person are not used unless they say so', async () => {
    const { source, logIn } = await start(() => ({ status: 404 }))
    const env = {
      ...ENV_KEYS,
      AWS_ENDPOINT_URL_STS: source.url,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    }
    expect(await logIn(env, ['auto'])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/No identity/),
    })
    expect(source.got).toEqual([])
  })
})
