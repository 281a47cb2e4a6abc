import { join, resolve } from 'node:path'
import { endpointAnswer } from '../aws/answers.ts'
import { type EndpointReply, openAwsEndpoint, refusal } from '../aws/endpoint.ts'
import { childEnvironment } from '../aws/environment.ts'
import { EXIT, failureOf, usage } from '../frame/failure.ts'
import { defineVerb } from '../frame/verb.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Session } from '../session/open.ts'
import { writePrivateFile } from '../session/private-file.ts'
import { keepFresh } from '../tools/fresh-file.ts'
import { RENEW_BEFORE_MS } from '../tools/held.ts'
import { needJwt } from '../tools/parts.ts'
import { REQUEST_OPTIONS, type RequestOptions, requestOf } from '../tools/request.ts'
import { type CommandWish, type Supply, withCommand } from '../tools/with-command.ts'

interface ServeOptions extends RequestOptions {
  keepLogin?: boolean
  port?: string
}

const COMMAND = [
  { name: '<command>', description: 'what is run, without a shell' },
  { name: '[args...]', description: 'its arguments, as they are' },
]
const KEEP_LOGIN = {
  flags: '--keep-login',
  description: 'leave our own login in the environment of the command',
}
const REPORT =
  'one line on standard error when the command has ended: {credentials: [{id, backend, expires_at, revoked}], exit_code}'

export const serve = defineVerb<ServeOptions, [command: string, args: string[]]>({
  description:
    'Runs a command whose AWS SDKs get their credentials from an endpoint on the loopback address, as in a container. They are renewed as long as it runs and revoked when it ends; its exit code is ours. The backend gives access_key_id, secret_access_key and session_token.',
  arguments: COMMAND,
  options: [
    ...REQUEST_OPTIONS,
    KEEP_LOGIN,
    { flags: '--port <number>', description: 'port of the endpoint; 0: any that is free', default: '0' },
  ],
  examples: [
    { command: 'mayfly aws serve --backend cloud -- aws s3 ls', about: 'one command' },
    { command: 'mayfly aws serve --backend cloud -- bash', about: 'a shell, and all that runs in it' },
  ],
  json: REPORT,
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const port = portOf(options.port)
    return withCommand(context, wishOf(options, command, args), async (supply) => {
      // What cannot work shall be told before the command is started.
      endpointAnswer(await supply.current())
      const endpoint = await openAwsEndpoint(port, () => replyFrom(supply))
      const tokenFile = join(supply.directory, 'authorization')
      await writePrivateFile(tokenFile, endpoint.authorization)
      const added = {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: endpoint.url,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
      }
      return {
        env: childEnvironment(context.env, added, options.keepLogin === true),
        close: endpoint.close,
      }
    })
  },
})

interface WebIdentityOptions extends RequestOptions {
  keepLogin?: boolean
  roleArn?: string
  sessionName?: string
  tokenFile?: string
}

const ROLE = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,575}$/
const SESSION_NAME = /^[\w+=,.@-]{2,64}$/

export const webIdentity = defineVerb<WebIdentityOptions, [command: string, args: string[]]>({
  description:
    'Runs a command whose AWS SDKs take a role with a token of the backend (AssumeRoleWithWebIdentity). The backend is of kind jwt, for the audience that the identity provider in AWS lists: sts.amazonaws.com. The token is in a file that is renewed as long as the command runs; its exit code is ours.',
  arguments: COMMAND,
  options: [
    ...REQUEST_OPTIONS,
    KEEP_LOGIN,
    { flags: '--role-arn <arn>', description: 'role that is taken' },
    { flags: '--session-name <name>', description: 'what AWS records; mayfly-NAME of the agent by default' },
    {
      flags: '--token-file <path>',
      description: 'where the token is put; a private place by default; deleted at the end',
    },
  ],
  examples: [
    {
      command:
        'mayfly aws web-identity --backend aws-sts --role-arn arn:aws:iam::123456789012:role/agent -- aws s3 ls',
      about: 'take the role, list the buckets',
    },
  ],
  json: REPORT,
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const { roleArn, sessionName, tokenFile } = options
    if (roleArn === undefined) throw usage('--role-arn is needed.', 'It is that of the role in AWS.')
    if (!ROLE.test(roleArn))
      throw usage('What --role-arn gives is no role.', 'Give it as arn:aws:iam::123456789012:role/NAME.')
    if (sessionName !== undefined && !SESSION_NAME.test(sessionName))
      throw usage('--session-name is not of the form of AWS.', 'Use 2 to 64 of letters, digits and +=,.@-_.')
    return withCommand(context, wishOf(options, command, args), async (supply) => {
      const { session, directory } = supply
      const path = tokenFile === undefined ? join(directory, 'token') : resolve(context.cwd, tokenFile)
      const added = {
        AWS_WEB_IDENTITY_TOKEN_FILE: path,
        AWS_ROLE_ARN: roleArn,
        AWS_ROLE_SESSION_NAME: sessionName ?? (await sessionNameOf(session)),
      }
      const toToken = (credential: HeldCredential) => needJwt(credential, 'AWS')
      const file = await keepFresh(context, path, supply, toToken, RENEW_BEFORE_MS.aws)
      return { env: childEnvironment(context.env, added, options.keepLogin === true), close: file.close }
    })
  },
})

function wishOf(options: RequestOptions, command: string, args: readonly string[]): CommandWish {
  return { request: requestOf(options), renewBeforeMs: RENEW_BEFORE_MS.aws, command, args }
}

async function replyFrom(supply: Supply): Promise<EndpointReply> {
  try {
    return { status: 200, body: endpointAnswer(await supply.current()) }
  } catch (error) {
    const { message, exitCode } = failureOf(error)
    // SDKs try again after a 5xx, and tell a 4xx.
    return exitCode === EXIT.unreachable
      ? refusal(503, 'ServiceUnavailable', message)
      : refusal(400, 'CredentialsRefused', message)
  }
}

/** A name is no reason to let the command wait. */
const NAME_MS = 10_000

async function sessionNameOf({ client }: Session): Promise<string> {
  const { name } = await client.status({ signal: AbortSignal.timeout(NAME_MS) })
  return `mayfly-${name.replace(/[^\w+=,.@-]/g, '-')}`.slice(0, 64)
}

function portOf(text = '0'): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw usage('--port is no port.', 'Give a number up to 65535, or leave it out.')
}
