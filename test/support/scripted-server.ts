import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** The error that a promise rejects with. */
export async function thrown(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

/** A server that gives the scripted replies in order; a function may also close the connection. */
export async function scripted(...answers: ((request: IncomingMessage, response: ServerResponse) => void)[]) {
  const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body })
      const answer = answers[Math.min(seen.length, answers.length) - 1]
      answer?.(request, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}

export const json = (status: number, body: unknown, headers: Record<string, string> = {}) => {
  return (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }
}
/** A refusal as the server words it. */
export const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(status, { error: { code, message: `Says ${code}.`, request_id: 'req_1' } }, headers)
/** Ends the connection without an answer. */
export const cut = (request: IncomingMessage) => {
  request.socket.destroy()
}
