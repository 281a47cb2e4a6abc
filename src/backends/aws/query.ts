import { BackendError, denied, unavailable } from '../../domain/backend-error.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'

/** Of the query protocol that STS and IAM share: a form, answered in XML. */
export interface Answer {
  readonly ok: boolean
  readonly status: number
  readonly text: string
}

export interface Service {
  readonly url: string
  readonly service: 'sts' | 'iam'
  readonly region: string
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }

/** Signed with the access key (AWS General Reference, "Signature Version 4"). */
export async function postSigned(
  settings: Config,
  host: Host,
  { url, service, region }: Service,
  form: URLSearchParams,
  signal: AbortSignal,
): Promise<Answer> {
  const { AwsV4Signer } = await import('aws4fetch')
  const body = form.toString()
  const signed = await new AwsV4Signer({
    method: 'POST',
    url,
    headers: FORM,
    body,
    accessKeyId: settings.access_key_id ?? '',
    secretAccessKey: settings.secret_access_key ?? '',
    service,
    region,
  }).sign()
  return post(settings, host, { url, body, headers: Object.fromEntries(signed.headers) }, signal)
}

export async function post(
  { local, ca }: Config,
  host: Host,
  { url, body, headers = FORM }: { url: string; body: string; headers?: Record<string, string> },
  signal: AbortSignal,
): Promise<Answer> {
  const options = { local, ...(ca === undefined ? {} : { ca }) }
  const response = await host.fetch(url, { method: 'POST', headers, body, signal }, options)
  return { ok: response.ok, status: response.status, text: await response.text() }
}

export type Fault = readonly [
  code: RegExp,
  fault: 'denied' | 'misconfigured' | 'unsupported' | 'unavailable',
  message: string,
]

const LOGIN =
  /^(InvalidClientTokenId|SignatureDoesNotMatch|IncompleteSignature|InvalidAccessKeyId|ExpiredToken$)/

export const codeOf = ({ text }: Answer) => partOf(text, 'Code') ?? ''

/** By the code of the answer: `own` first, then what both services say (AWS STS API Reference, "Common Errors"). */
export function faultOf(answer: Answer, name: string, own: readonly Fault[]): BackendError {
  const { status, text } = answer
  const code = codeOf(answer)
  const options = { detail: `${status} ${code}: ${partOf(text, 'Message') ?? ''}` }
  const common: readonly Fault[] = [
    [/^(Throttling|ServiceUnavailable|RequestLimitExceeded)/, 'unavailable', `${name} is busy.`],
    // `denied`: after a rotation, Mayfly tries the other key (ADR 0033).
    [LOGIN, 'denied', `${name} does not accept the access key of Mayfly.`],
  ]
  const found = [...own, ...common].find(([pattern]) => pattern.test(code))
  if (found !== undefined)
    return new BackendError(found[1], found[2], { ...options, login: LOGIN.test(code) })
  if (status === 429 || status >= 500) return unavailable(`${name} cannot answer now.`, options)
  return denied(`${name} refused the request.`, options)
}

/** The text of the first element of that name. The elements that we read hold neither others nor entities but these. */
export function partOf(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text?.replace(/&(amp|lt|gt|quot|apos);/g, (_, entity: keyof typeof ENTITIES) => ENTITIES[entity])
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
