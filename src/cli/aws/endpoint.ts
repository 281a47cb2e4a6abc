import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { usage } from '../frame/failure.ts'

const PATH = '/credentials'
const HOST = '127.0.0.1'

export interface AwsEndpoint {
  /** For AWS_CONTAINER_CREDENTIALS_FULL_URI. */
  readonly url: string
  /** The required `Authorization` header: the value of AWS_CONTAINER_AUTHORIZATION_TOKEN. */
  readonly authorization: string
  close(): Promise<void>
}

export interface EndpointReply {
  readonly status: number
  readonly body: object
}

/**
 * Answers `GET /credentials` on the loopback address to callers that present the token. `answer` must not throw. Throws
 * `CliError` (usage) for a port in use.
 */
export async function openAwsEndpoint(
  port: number,
  answer: () => Promise<EndpointReply>,
): Promise<AwsEndpoint> {
  const authorization = randomBytes(32).toString('base64url')
  const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 10_000, headersTimeout: 5_000 })
  let authority = ''
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    const refusal = refusalOf(request, authority, authorization)
    if (refusal !== undefined) write(response, refusal)
    else void answer().then((reply) => write(response, reply))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(
        cause.code === 'EADDRINUSE' || cause.code === 'EACCES'
          ? usage(`Cannot listen on port ${port}.`, 'Omit --port to use a free one.')
          : cause,
      )
    })
    server.listen(port, HOST, resolve)
  })
  // The command keeps this process alive; without it there is nothing to serve.
  server.unref()
  const address = server.address()
  authority = `${HOST}:${typeof address === 'object' ? address?.port : port}`
  return {
    url: `http://${authority}${PATH}`,
    authorization,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Undefined for a valid request. Checking the host stops web pages that rebind a name to this address. */
function refusalOf(
  { method, url, headers }: IncomingMessage,
  authority: string,
  authorization: string,
): EndpointReply | undefined {
  if (headers.host !== authority)
    return refusal(421, 'MisdirectedRequest', 'This endpoint does not serve that host.')
  if (!isSame(headers.authorization ?? '', authorization))
    return refusal(401, 'AccessDenied', 'The authorization token is missing or wrong.')
  if (url !== PATH) return refusal(404, 'NotFound', 'Not found.')
  if (method !== 'GET') return refusal(405, 'MethodNotAllowed', 'Only GET is supported.')
  return undefined
}

/** In the format that SDKs display. */
export function refusal(status: number, code: string, message: string): EndpointReply {
  return { status, body: { Code: code, Message: message } }
}

/** In constant time. */
function isSame(given: string, wanted: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(given), hash(wanted))
}

function write(response: ServerResponse, { status, body }: EndpointReply): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    ...(status === 405 ? { allow: 'GET' } : {}),
  })
  response.end(JSON.stringify(body))
}
