import { describe, expect, it } from 'vitest'
import type { Signed } from './read-signed.ts'
import { checkService } from './service.ts'
import type { SigV4Place } from './sign-anew.ts'
import { upstreamHost } from './upstream.ts'

const DENIED = ['sts', 'iam', 'sso', 'awsssoportal', 'cognito-identity']
const check = (service: string, host = 'x.example.com', more: Partial<SigV4Place> = {}, target = '/') =>
  checkService({
    ...{ target, host, signed: { service } },
    place: { in: 'sigv4', keyId: 'id', deny: DENIED, ...more },
  })
const refused = { kind: 'refuse', reason: 'service_not_allowed' }

describe('the service that a request is signed for', () => {
  it.each(['s3', 'dynamodb', 'stsx', 'cognito-idp'])('permits %s', (service) => {
    expect(check(service)).toBeUndefined()
  })

  it.each([...DENIED, 'STS', 'Iam'])('refuses %s', (service) => {
    expect(check(service)).toEqual(refused)
  })

  it('permits only what is named, where anything is', () => {
    expect(check('s3', 'x', { allow: ['s3'] })).toBeUndefined()
    expect(check('sqs', 'x', { allow: ['s3'] })).toEqual(refused)
    expect(check('sts', 'x', { allow: ['sts'] })).toEqual(refused)
  })

  it.each([
    'sts.amazonaws.com',
    'STS.amazonaws.com:443',
    'sts.eu-west-1.amazonaws.com',
    'sts-fips.us-east-1.amazonaws.com',
    'sts.us-gov-west-1.amazonaws.com',
    'sts.cn-north-1.amazonaws.com.cn',
    'iam.us-gov.amazonaws.com',
    'iam.global.api.aws'.replace('.global', ''),
  ])('refuses the host %s under any other name', (host) => {
    expect(check('s3', host)).toEqual(refused)
  })

  it.each(['sts.s3.amazonaws.com', 'sts.s3.eu-west-1.amazonaws.com', 'iam.example.com'])(
    'takes no bucket for a service: %s',
    (host) => {
      expect(check('s3', host)).toBeUndefined()
    },
  )

  it('refuses the one call of S3 that answers with keys', () => {
    const path = '/v20180820/accessgrantsinstance/dataaccess'
    for (const target of [path, `${path}?target=x`, `/${path}/`])
      expect(check('s3', 'x', {}, target)).toEqual(refused)
    expect(check('s3', 'x', {}, `${path}x`)).toBeUndefined()
  })
})

describe('the upstream of a base URL', () => {
  const host = (
    service: string,
    region: string,
    target = '/',
    headers: [string, string][] = [],
    suffix = 'amazonaws.com',
  ) => upstreamHost(suffix, { service, region } as Signed, { method: 'POST', target, headers })

  it.each([
    ['s3', 'eu-west-1', 's3.eu-west-1.amazonaws.com'],
    ['dynamodb', 'us-east-1', 'dynamodb.us-east-1.amazonaws.com'],
    ['ecr', 'eu-central-1', 'api.ecr.eu-central-1.amazonaws.com'],
    ['ses', 'eu-central-1', 'email.eu-central-1.amazonaws.com'],
    ['route53', 'us-east-1', 'route53.amazonaws.com'],
    ['iam', 'us-east-1', 'iam.amazonaws.com'],
    ['iam', 'us-gov-west-1', 'iam.us-gov.amazonaws.com'],
    ['sagemaker', 'us-east-1', 'api.sagemaker.us-east-1.amazonaws.com'],
    ['bedrock', 'us-east-1', 'bedrock.us-east-1.amazonaws.com'],
  ])('is for %s in %s %s', (service, region, wanted) => {
    expect(host(service, region)).toBe(wanted)
  })

  it('depends on path and action where endpoints share a signing name', () => {
    const of = (target: string) => host('bedrock', 'us-east-1', target)
    expect(of('/model/anthropic.claude/invoke-with-response-stream')).toBe(
      'bedrock-runtime.us-east-1.amazonaws.com',
    )
    expect(of('/model/a%3Ab/converse?x')).toBe('bedrock-runtime.us-east-1.amazonaws.com')
    expect(of('/agents/')).toBe('bedrock-agent.us-east-1.amazonaws.com')
    expect(of('/foundation-models')).toBe('bedrock.us-east-1.amazonaws.com')
    const target = [['X-Amz-Target', 'DynamoDBStreams_20120810.GetRecords']] as [string, string][]
    expect(host('dynamodb', 'us-east-1', '/', target)).toBe('streams.dynamodb.us-east-1.amazonaws.com')
    const account = [['x-amz-account-id', '123456789012']] as [string, string][]
    expect(host('s3', 'us-east-1', '/v20180820/jobs', account)).toBe(
      '123456789012.s3-control.us-east-1.amazonaws.com',
    )
  })

  it('keeps to the partition of the origin', () => {
    expect(host('s3', 'cn-north-1', '/', [], 'amazonaws.com.cn')).toBe('s3.cn-north-1.amazonaws.com.cn')
  })

  it.each([
    ['evil.example', 'x'],
    ['evil/', 'us-east-1'],
    ['s3', 'us-east-1.evil.example/'],
    ['s3', '@evil'],
    ['', 'us-east-1'],
    ['execute-api', 'us-east-1'],
    ['iotdevicegateway', 'us-east-1'],
  ])('is never made of anything but labels: %j %j', (service, region) => {
    const made = host(service, region)
    expect(made === undefined || /^[a-z0-9.-]+\.amazonaws\.com$/.test(made)).toBe(true)
    if (!/^[a-z0-9-]+$/.test(region) || service === '' || service === 'execute-api')
      expect(made).toBeUndefined()
  })

  it('needs the account of what is controlled for one', () => {
    expect(host('s3', 'us-east-1', '/v20180820/jobs')).toBeUndefined()
    expect(host('s3', 'us-east-1', '/v20180820/jobs', [['x-amz-account-id', 'a.b']])).toBeUndefined()
  })
})
