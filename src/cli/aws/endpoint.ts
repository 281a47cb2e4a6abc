import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { usage } from '../frame/failure.ts'

const PATH = '/credentials'
const HOST = '127.0.0.1'

export interface AwsEndpoint {
  /** For AWS_CONTAINER_CREDENTIALS_FULL_URI. */
  readonly url: string
  /** What `Authorization` must be: the content of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE. */
  readonly authorization: string
  close(): Promise<void>
}

/** What to answer: a status and a JSON object. */
export interface EndpointReply {
  readonly status: number
  readonly body: object
}

/**
 * Answers `GET /credentials` on the loopback address to whoever has the token. `answer` must not throw. Throws
 * `CliError` (usage) for a port that is taken.
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
          ? usage(`Port ${port} cannot be listened on.`, 'Leave out --port to have a free one.')
          : cause,
      )
    })
    server.listen(port, HOST, resolve)
  })
  // The command keeps the process going; without one there is nothing to serve.
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

/** Undefined for a request that is to be answered. The host is checked against pages that rebind a name to us. */
function refusalOf(
  { method, url, headers }: IncomingMessage,
  authority: string,
  authorization: string,
): EndpointReply | undefined {
  if (headers.host !== authority) return refusal(421, 'MisdirectedRequest', 'This host is not served.')
  if (!isSame(headers.authorization ?? '', authorization))
    return refusal(401, 'AccessDenied', 'The authorization token is absent or wrong.')
  if (url !== PATH) return refusal(404, 'NotFound', 'There is nothing here.')
  if (method !== 'GET') return refusal(405, 'MethodNotAllowed', 'Only GET is answered.')
  return undefined
}

/** In the words of the SDKs, which show them. */
export function refusal(status: number, code: string, message: string): EndpointReply {
  return { status, body: { Code: code, Message: message } }
}

/** In a time that does not tell how much of it is right. */
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
