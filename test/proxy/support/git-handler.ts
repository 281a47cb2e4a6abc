import { spawn } from 'node:child_process'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Handler } from './client-world.ts'

/** `git http-backend` for the bare repositories in `root`, behind Basic authentication with this password. */
export function gitHandler(root: string, password: string, seen: string[]): Handler {
  return (request, response) => {
    const [, login = ''] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? []
    const isKnown = Buffer.from(login, 'base64').toString().endsWith(`:${password}`)
    seen.push(
      `${request.method} ${request.url?.split('?')[0]} ${isKnown ? 'known' : login === '' ? 'none' : 'wrong'}`,
    )
    if (isKnown) serve(root, request, response)
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('Unauthorized')
  }
}

/** CGI (RFC 3875). */
function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const { headers } = request
  const length = headers['content-length']
  const child = spawn('git', ['http-backend'], {
    env: {
      ...{
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        REMOTE_USER: 'agent',
      },
      ...{ PATH_INFO: path, QUERY_STRING: query, REQUEST_METHOD: request.method, REMOTE_ADDR: '127.0.0.1' },
      CONTENT_TYPE: headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
      ...(length === undefined ? {} : { CONTENT_LENGTH: length }),
    },
  })
  child.stdin.on('error', () => {})
  child.stderr.resume()
  request.pipe(child.stdin)
  void answer(child.stdout, response)
}

async function answer(output: Readable, response: ServerResponse): Promise<void> {
  let before = Buffer.alloc(0)
  for await (const chunk of output) {
    if (response.headersSent) {
      if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve))
      continue
    }
    before = Buffer.concat([before, chunk as Buffer])
    const end = before.indexOf('\r\n\r\n')
    if (end === -1) continue
    const lines = before.subarray(0, end).toString().split('\r\n')
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(line) ?? []
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
      else response.setHeader(name, value)
    }
    response.write(before.subarray(end + 4))
  }
  response.end()
}
