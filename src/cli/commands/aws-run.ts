import { join, resolve } from 'node:path'
import { endpointAnswer, regionFor } from '../aws/answers.ts'
import { type EndpointReply, openAwsEndpoint, refusal } from '../aws/endpoint.ts'
import { childEnvironment } from '../aws/environment.ts'
import { EXIT, failureOf, usage } from '../frame/failure.ts'
import { flag, text } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import { supervise } from '../run/supervise.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Session } from '../session/open.ts'
import { keepFresh } from '../tools/fresh-file.ts'
import { freshSupply, type Supply } from '../tools/fresh-supply.ts'
import { RENEW_BEFORE_MS } from '../tools/held.ts'
import { needJwt } from '../tools/parts.ts'
import { REQUEST_OPTIONS, requestOf } from '../tools/request.ts'

const COMMAND = [
  { name: '<command>', description: 'the command to run, without a shell' },
  { name: '[args...]', description: 'its arguments, unchanged' },
] as const
/** As the default of `mayfly run --grace`. */
const GRACE_MS = 8_000
const KEEP_LOGIN = {
  keepLogin: flag('keep the login of mayfly in the environment of the command'),
}
const REPORT =
  'one line on standard error after the command has ended: {credentials: [{id, backend, expires_at, revoked}], exit_code}'

export const serve = defineVerb({
  description:
    'Runs a command whose AWS SDKs fetch credentials from an endpoint on the loopback address, as in a container. Renews them while the command runs, revokes them when it ends, and exits with its code. The backend must give access_key_id, secret_access_key and session_token.',
  arguments: COMMAND,
  options: {
    ...REQUEST_OPTIONS,
    ...KEEP_LOGIN,
    port: text('<number>', 'port of the endpoint; 0 for any free port', { default: '0' }),
  },
  examples: [
    { command: 'mayfly aws serve --backend cloud -- aws s3 ls', about: 'one command' },
    { command: 'mayfly aws serve --backend cloud -- bash', about: 'a shell and everything started from it' },
  ],
  json: REPORT,
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const port = portOf(options.port)
    const request = requestOf(options)
    return supervise(context, { name: command, args, graceMs: GRACE_MS }, async (run) => {
      const supply = freshSupply(run.issued, request, RENEW_BEFORE_MS.aws, context.now)
      // Report an unsuitable backend before the command starts.
      const first = await supply()
      endpointAnswer(first)
      const endpoint = await openAwsEndpoint(port, () => replyFrom(supply))
      run.onEnd(endpoint.close)
      const added = {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: endpoint.url,
        // SDKs of before 2023 read no file (aws 2.9 of Debian 12, for one), and new ones warn of a file beside this.
        AWS_CONTAINER_AUTHORIZATION_TOKEN: endpoint.authorization,
        ...regionFor(first, context.env),
      }
      return childEnvironment(context.env, added, options.keepLogin === true)
    })
  },
})

const ROLE = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,575}$/
const SESSION_NAME = /^[\w+=,.@-]{2,64}$/

export const webIdentity = defineVerb({
  description:
    'Runs a command whose AWS SDKs assume a role with a token of the backend (AssumeRoleWithWebIdentity). The backend must be of kind jwt, with the audience that the identity provider in AWS expects: sts.amazonaws.com. The token is in a file that is renewed while the command runs. Exits with the code of the command.',
  arguments: COMMAND,
  options: {
    ...REQUEST_OPTIONS,
    ...KEEP_LOGIN,
    roleArn: text('<arn>', 'role to assume'),
    sessionName: text('<name>', 'session name that AWS records; by default mayfly-AGENT'),
    tokenFile: text('<path>', 'file for the token; by default in a private directory; deleted at the end'),
  },
  examples: [
    {
      command:
        'mayfly aws web-identity --backend aws-sts --role-arn arn:aws:iam::123456789012:role/agent -- aws s3 ls',
      about: 'assume the role and list the buckets',
    },
  ],
  json: REPORT,
  exits: [3, 4, 5],
  passThrough: 'options',
  ownSignals: true,
  run: async (context, options, command, args) => {
    const { roleArn, sessionName, tokenFile } = options
    if (roleArn === undefined) throw usage('--role-arn is required.', 'Give the ARN of the role in AWS.')
    if (!ROLE.test(roleArn))
      throw usage('--role-arn is not the ARN of a role.', 'Example: arn:aws:iam::123456789012:role/NAME.')
    if (sessionName !== undefined && !SESSION_NAME.test(sessionName))
      throw usage('--session-name is not valid in AWS.', 'Use 2 to 64 letters, digits and +=,.@-_.')
    const request = requestOf(options)
    return supervise(context, { name: command, args, graceMs: GRACE_MS }, async (run) => {
      const path =
        tokenFile === undefined
          ? join((await run.openDirectory()).path, 'token')
          : resolve(context.cwd, tokenFile)
      const added = {
        AWS_WEB_IDENTITY_TOKEN_FILE: path,
        AWS_ROLE_ARN: roleArn,
        AWS_ROLE_SESSION_NAME: sessionName ?? (await sessionNameOf(run.session)),
      }
      const toToken = (credential: HeldCredential) => needJwt(credential, 'AWS')
      const supply = freshSupply(run.issued, request, RENEW_BEFORE_MS.aws, context.now)
      const file = await keepFresh(context, path, supply, toToken, RENEW_BEFORE_MS.aws)
      run.onEnd(file.close)
      return childEnvironment(context.env, added, options.keepLogin === true)
    })
  },
})

async function replyFrom(supply: Supply): Promise<EndpointReply> {
  try {
    return { status: 200, body: endpointAnswer(await supply()) }
  } catch (error) {
    const { message, exitCode } = failureOf(error)
    // SDKs retry after a 5xx and report a 4xx.
    return exitCode === EXIT.unreachable
      ? refusal(503, 'ServiceUnavailable', message)
      : refusal(400, 'CredentialsRefused', message)
  }
}

/** Looking up a name must not delay the command for long. */
const NAME_MS = 10_000

async function sessionNameOf({ client }: Session): Promise<string> {
  const { name } = await client.status({ signal: AbortSignal.timeout(NAME_MS) })
  return `mayfly-${name.replace(/[^\w+=,.@-]/g, '-')}`.slice(0, 64)
}

function portOf(text = '0'): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw usage('--port is not a port number.', 'Give a number up to 65535, or omit it.')
}
