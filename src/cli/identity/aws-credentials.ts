import { parseJson } from '../../domain/formats/json.ts'
import type { Context } from '../frame/verb.ts'
import { ask } from './ask.ts'
import { readToken } from './file.ts'
import { given, noToken } from './source.ts'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Where ECS and EKS hand out the credentials of the container (docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials). */
export const CONTAINER = [
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
] as const

/** From the environment, else the container, else the machine, as the libraries of AWS look. Throws `CliError`. */
export async function credentialsOf(
  context: Context,
  title: string,
  signal: AbortSignal | undefined,
): Promise<AwsCredentials> {
  const accessKeyId = given(context, 'AWS_ACCESS_KEY_ID')
  const secretAccessKey = given(context, 'AWS_SECRET_ACCESS_KEY')
  if (accessKeyId !== undefined && secretAccessKey !== undefined) {
    const sessionToken = given(context, 'AWS_SESSION_TOKEN')
    return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
  }
  const [relative, full] = CONTAINER.map((name) => given(context, name))
  const url = relative === undefined ? full : `http://169.254.170.2${relative}`
  const text =
    url === undefined
      ? await askRole(context, title, signal)
      : (await ask(context, title, { url, headers: authorizationOf(context, title), signal })).text
  return read(title, text)
}

function authorizationOf(context: Context, title: string): Record<string, string> {
  const file = given(context, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')
  const token =
    file === undefined ? given(context, 'AWS_CONTAINER_AUTHORIZATION_TOKEN') : readToken(title, file)
  if (token === undefined) return {}
  if (!/^[\x20-\x7e]+$/.test(token)) throw noToken(title, 'the token for its credentials is damaged.')
  return { authorization: token }
}

/** IMDSv2 (docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval): a PUT, which no redirect or proxy passes on. */
export const HEADERS_OF_TOKEN = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' }

export function machineOf(context: Context): string {
  const base = given(context, 'AWS_EC2_METADATA_SERVICE_ENDPOINT') ?? 'http://169.254.169.254'
  return base.replace(/\/+$/, '')
}

/** What the machine's metadata service has at this path. Throws `CliError`. */
export async function askMachine(
  context: Context,
  title: string,
  path: string,
  signal: AbortSignal | undefined,
): Promise<string> {
  const base = machineOf(context)
  const url = `${base}/latest/api/token`
  const { text: token } = await ask(context, title, { url, method: 'PUT', headers: HEADERS_OF_TOKEN, signal })
  if (!/^[\x21-\x7e]{1,1024}$/.test(token)) throw noToken(title, 'what answers is not its metadata service.')
  const headers = { 'x-aws-ec2-metadata-token': token }
  return (await ask(context, title, { url: `${base}${path}`, headers, signal })).text.trim()
}

async function askRole(context: Context, title: string, signal: AbortSignal | undefined): Promise<string> {
  const path = '/latest/meta-data/iam/security-credentials/'
  const role = await askMachine(context, title, path, signal)
  // IAM User Guide, "IAM and AWS STS quotas": the form of a name.
  if (!/^[\w+=,.@-]{1,64}$/.test(role)) throw noToken(title, 'the machine has no role.')
  return askMachine(context, title, `${path}${encodeURIComponent(role)}`, signal)
}

function read(title: string, text: string): AwsCredentials {
  const { AccessKeyId, SecretAccessKey, Token } = (parseJson(text) ?? {}) as Record<string, unknown>
  const parts = [AccessKeyId, SecretAccessKey, Token]
  if (!parts.every((part) => typeof part === 'string' && /^[\x21-\x7e]{1,8192}$/.test(part)))
    throw noToken(title, 'the answer holds no credentials.')
  const [accessKeyId = '', secretAccessKey = '', sessionToken = ''] = parts as string[]
  return { accessKeyId, secretAccessKey, sessionToken }
}
