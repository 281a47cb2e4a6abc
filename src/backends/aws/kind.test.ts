import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { type Config, endpointOf } from './config.ts'
import { aws } from './kind.ts'
import { canGive, isAwsScope, sessionPolicy } from './scopes.ts'

const settings: Config = {
  role_arn: 'arn:aws:iam::123456789012:role/reports',
  region: 'eu-west-1',
  access_key_id: 'AKIAIOSFODNN7EXAMPLE',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  local: true,
}
const policyOf = (scopes: string[], given: Partial<Config> = {}) => {
  const text = sessionPolicy({ ...settings, ...given }, scopes)
  return text === undefined ? undefined : JSON.parse(text).Statement
}

describe('scopes', () => {
  it.each(['*', 's3/reports:read', 's3/a.b-c/x/y*:write', 'policy/own.one'])('takes %s', (scope) => {
    expect(isAwsScope(scope)).toBe(true)
  })

  it.each([
    's3/*:read',
    's3/reports:*',
    's3/reports',
    's3/Reports:read',
    's3/ab:read',
    's3/reports/a*b:read',
    's3/reports/":read',
    'policy/',
    'policy/a/b',
    's3/reports:read\n',
  ])('refuses %j', (scope) => {
    expect(isAwsScope(scope)).toBe(false)
  })

  it('cannot give a policy that the backend does not have', () => {
    expect(canGive(settings, 'policy/own')).toBe(false)
    expect(canGive(settings, 's3/reports:read')).toBe(true)
  })
})

it.each([
  ['eu-west-1', 'amazonaws.com'],
  ['us-gov-west-1', 'amazonaws.com'],
  ['cn-north-1', 'amazonaws.com.cn'],
  ['eusc-de-east-1', 'amazonaws.eu'],
  ['us-iso-west-1', 'c2s.ic.gov'],
  ['us-isob-east-1', 'sc2s.sgov.gov'],
  ['eu-isoe-west-1', 'cloud.adc-e.uk'],
  ['us-isof-south-1', 'csp.hci.ic.gov'],
])('STS of the region %s is in the domain %s', (region, domain) => {
  expect(endpointOf({ ...settings, region })).toBe(`https://sts.${region}.${domain}/`)
})

describe('the session policy', () => {
  it('denies everything for no scopes, and is left out for *', () => {
    expect(policyOf([])).toEqual([{ Effect: 'Deny', Action: '*', Resource: '*' }])
    expect(policyOf(['*', 's3/reports:read'])).toBeUndefined()
  })

  it('names exactly the keys and actions that are granted', () => {
    expect(policyOf(['s3/reports/2026/*:write'])).toEqual([
      {
        Effect: 'Allow',
        Action: ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
        Resource: 'arn:aws:s3:::reports/2026/*',
      },
      {
        Effect: 'Allow',
        Action: 's3:ListBucket',
        Resource: 'arn:aws:s3:::reports',
        Condition: { StringLike: { 's3:prefix': '2026/*' } },
      },
    ])
  })

  it('uses the partition of the role', () => {
    const role = { role_arn: 'arn:aws-cn:iam::123456789012:role/reports' }
    expect(policyOf(['s3/reports:read'], role)[0].Resource).toBe('arn:aws-cn:s3:::reports/*')
  })

  it("takes the statements of the backend's own policies", () => {
    const statement = { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: '*' }
    const policies = [{ name: 'queue', policy: JSON.stringify({ Statement: [statement] }) }]
    expect(policyOf(['policy/queue'], { policies })).toEqual([statement])
    expect(() => policyOf(['policy/other'], { policies })).toThrow('no policy of that name')
  })

  it('refuses more than AWS takes', () => {
    const scopes = Array.from({ length: 20 }, (_, n) => `s3/bucket-number-${n}:read`)
    expect(() => policyOf(scopes)).toThrow('request fewer')
  })
})

describe('the configuration', () => {
  it.each([
    [{ secret_access_key: undefined }, 'go together'],
    [{ audience: 'x' }, 'no effect'],
    [{ policies: [{ name: 'a', policy: '{"Statement":{}}' }] }, 'not a JSON object'],
  ])('refuses %j', async (given, message) => {
    await expect(aws.complete?.({ ...settings, ...given } as Config)).rejects.toThrow(message)
  })
})

describe('answers of STS', () => {
  let close = async () => {}
  afterEach(() => close())

  /** Asks for a session of STS that answers so; returns the fault and the request. */
  async function ask(status: number, body: string, ttlMs = 3_600_000) {
    let form = new URLSearchParams()
    let authorization = ''
    const server = createServer(async (request, response) => {
      authorization = request.headers.authorization ?? ''
      form = new URLSearchParams((await request.toArray()).join(''))
      response.writeHead(status, { 'content-type': 'text/xml' }).end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    close = () => new Promise((resolve) => server.close(() => resolve()))
    const { port } = server.address() as AddressInfo
    const endpoint = `http://127.0.0.1:${port}/`
    const backend = await aws.open({ ...settings, endpoint }, createTestHost('cloud').host)
    const request = { ...newRequest(['s3/reports:read'], { ttlMs }), params: {} }
    const outcome = await backend.issue(request, never()).catch((error) => error)
    server.closeAllConnections()
    return { outcome, form, authorization, request }
  }
  const failure = (code: string, message = 'no') =>
    `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`

  const SESSION =
    '<Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>a&amp;b</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2040-01-01T00:00:00Z</Expiration></Credentials>'

  it.each([
    ['AccessDenied', 403, 'denied'],
    ['InvalidClientTokenId', 403, 'denied'],
    ['SignatureDoesNotMatch', 403, 'denied'],
    ['InvalidIdentityToken', 400, 'misconfigured'],
    ['IDPCommunicationError', 400, 'unavailable'],
    ['Throttling', 400, 'unavailable'],
    ['PackedPolicyTooLarge', 400, 'unsupported'],
    ['MalformedPolicyDocument', 400, 'misconfigured'],
    ['InternalFailure', 500, 'unavailable'],
    ['SomethingNew', 400, 'denied'],
  ])('%s (%i) is %s', async (code, status, fault) => {
    expect((await ask(status, failure(code))).outcome).toMatchObject({ name: 'BackendError', fault })
  })

  it('a role that permits shorter sessions is the fault of the request', async () => {
    const text = 'The requested DurationSeconds exceeds the MaxSessionDuration set for this role.'
    const { outcome } = await ask(400, failure('ValidationError', text))
    expect(outcome).toMatchObject({ fault: 'unsupported', message: expect.stringContaining('shorter ttl') })
  })

  it('an agent that ends in a minute gets the shortest session, and is told when that ends', async () => {
    const { outcome, form } = await ask(200, SESSION, 60_000)
    expect(form.get('DurationSeconds')).toBe('900')
    expect(outcome.upstreamExpiresAt).toBe(Date.UTC(2040, 0, 1))
  })

  it('a session is named after the credential and the agent', async () => {
    const { outcome, form, authorization, request } = await ask(200, SESSION)
    expect(outcome.fields).toEqual({
      access_key_id: 'ASIA1',
      secret_access_key: 'a&b',
      session_token: 't',
      region: 'eu-west-1',
    })
    expect(form.get('RoleSessionName')).toBe(`mf_${request.credentialId.slice(5)}-contract`)
    expect(Number(form.get('DurationSeconds'))).toBeGreaterThan(3_590)
    expect(authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/\d{8}\/eu-west-1\/sts\//,
    )
  })
})
