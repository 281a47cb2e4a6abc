import type { CallOptions } from '../../client/send.ts'
import type { Context } from '../frame/verb.ts'
import { ask, isAnswered } from './ask.ts'
import { askMachine, CONTAINER, credentialsOf, HEADERS_OF_TOKEN, machineOf } from './aws-credentials.ts'
import { given, type IdentitySource, noToken } from './source.ts'

const TITLE = 'AWS'
/** Five minutes, the default: it is used at once. */
const DURATION_SECONDS = '300'

/**
 * A token of the role, from STS (docs.aws.amazon.com/STS/latest/APIReference/API_GetWebIdentityToken), after
 * `aws iam enable-outbound-web-identity-federation`. Only regional endpoints have it.
 */
export const aws: IdentitySource = {
  name: 'aws',
  title: TITLE,
  needs: 'the credentials of a role, from the container, the machine or AWS_ACCESS_KEY_ID',
  // Keys in the environment may be a person's, who did not ask for this.
  isHere: (context) => [...CONTAINER, 'AWS_LAMBDA_FUNCTION_NAME'].some((name) => given(context, name)),
  answers: (context, signal) => {
    const url = `${machineOf(context)}/latest/api/token`
    const question = { url, method: 'PUT', headers: HEADERS_OF_TOKEN, signal } as const
    return isAnswered(context, question, ({ text }) => /^[\w=+/-]{20,200}$/.test(text))
  },
  workload: (context) =>
    JSON.stringify(['AWS_ACCESS_KEY_ID', ...CONTAINER].map((name) => given(context, name))),
  token: askSts,
}

async function askSts(context: Context, audience: string, { signal }: CallOptions): Promise<string> {
  const region = await regionOf(context, signal)
  const credentials = await credentialsOf(context, TITLE, signal)
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  const url = given(context, 'AWS_ENDPOINT_URL_STS') ?? `https://sts.${region}.${domain}/`
  const body = new URLSearchParams({
    Action: 'GetWebIdentityToken',
    Version: '2011-06-15',
    'Audience.member.1': audience,
    SigningAlgorithm: 'ES384',
    DurationSeconds: DURATION_SECONDS,
  }).toString()
  const { AwsV4Signer } = await import('aws4fetch')
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
  const signed = await new AwsV4Signer({
    method: 'POST',
    url,
    headers,
    body,
    ...credentials,
    service: 'sts',
    region,
  })
    .sign()
    .catch((error: unknown) => {
      throw noToken(TITLE, 'AWS_ENDPOINT_URL_STS is not an address.', undefined, error)
    })
  const question = { url, method: 'POST', headers: Object.fromEntries(signed.headers), body, signal } as const
  const { text } = await ask(context, TITLE, question)
  const token = /<WebIdentityToken>([\w.-]+)<\/WebIdentityToken>/.exec(text)?.[1]
  if (token === undefined) throw noToken(TITLE, 'its answer holds none.')
  return token
}

/** It becomes part of a name. */
const REGION = /^[a-z]{2,8}(?:-[a-z]{2,16}){1,3}-\d{1,2}$/

async function regionOf(context: Context, signal: AbortSignal | undefined): Promise<string> {
  const named = given(context, 'AWS_REGION') ?? given(context, 'AWS_DEFAULT_REGION')
  const region = named ?? (await askMachine(context, TITLE, '/latest/meta-data/placement/region', signal))
  if (REGION.test(region)) return region
  throw noToken(TITLE, 'the region is not known.', 'Set AWS_REGION.')
}
