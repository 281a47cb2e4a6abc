import { readdir, readFile, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { TestApp } from '../support/app.ts'

/** A policy that approves `ci-…` at once. */
export const POLICY_YAML = [
  'policies: [{name: ci, pattern: "ci-*", scopes: [demo], auto_approve: true}]',
  'limits: {enrollments_per_minute: 1000}',
].join('\n')

/** The pending enrollments, as the administrator sees them. */
export async function pendingOf(
  app: TestApp,
): Promise<{ id: string; name: string; public_key_fingerprint: string }[]> {
  return (await app.admin('GET', '/v1/admin/pending')).body
}

export async function decide(
  app: TestApp,
  id: string,
  verb: 'approve' | 'reject',
  body: object = {},
): Promise<void> {
  const reply = await app.admin('POST', `/v1/admin/pending/${id}/${verb}`, body)
  expect(reply.status).toBe(200)
}

/** Every file below with its text, by path. Expects all of them to be private. */
export async function privateFiles(directory: string): Promise<Record<string, string>> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true })
  const found: Record<string, string> = {}
  for (const entry of names) {
    const path = join(entry.parentPath, entry.name)
    const mode = (await stat(path)).mode & 0o777
    expect([path, mode]).toEqual([path, entry.isDirectory() ? 0o700 : 0o600])
    if (entry.isFile()) found[path] = await readFile(path, 'utf8')
  }
  return found
}

export type Moment = 'request' | 'reply'

export interface LossyProxy {
  readonly url: string
  /** `METHOD path` of every request passed on. */
  readonly passed: string[]
  /**
   * Loses the next matching request before it arrives, or its reply after the server handled it. Resolves when that
   * has happened. With `hang`, the client is left waiting instead of being disconnected.
   */
  lose(form: RegExp, moment: Moment, hang?: 'hang'): Promise<void>
  /** While away, cuts every connection. */
  setAway(away: boolean): void
  close(): Promise<void>
}

/** A proxy that loses requests and replies on demand. */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  let trap: { form: RegExp; moment: Moment; hang: boolean; sprung: () => void } | undefined
  let isAway = false
  const passed: string[] = []
  const listener = createServer((incoming, outgoing) => {
    void pass(incoming, outgoing)
  })
  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const what = `${incoming.method} ${incoming.url}`
    if (isAway) {
      incoming.socket.destroy()
      return
    }
    const mine = trap?.form.test(what) === true ? trap : undefined
    if (mine !== undefined) trap = undefined
    const spring = () => {
      if (mine?.hang !== true) incoming.socket.destroy()
      mine?.sprung()
    }
    if (mine?.moment === 'request') return spring()
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const reply = await send(new URL(incoming.url ?? '/', target), incoming, Buffer.concat(chunks))
    passed.push(what)
    if (mine !== undefined) return spring()
    // The shortest interval that the command accepts, so that tests do not wait for its next poll.
    const body = reply.body.toString().replace(/"poll_interval_ms":\d+/, '"poll_interval_ms":250')
    const { 'content-length': _, ...headers } = reply.headers
    outgoing.writeHead(reply.status, headers).end(body)
  }
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    passed,
    lose: (form, moment, hang) =>
      new Promise((resolve) => {
        trap = { form, moment, hang: hang === 'hang', sprung: resolve }
      }),
    setAway: (away) => {
      isAway = away
      if (away) listener.closeAllConnections()
    },
    close: async () => {
      listener.closeAllConnections()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

function send(url: URL, { method, headers }: IncomingMessage, body: Buffer) {
  return new Promise<{ status: number; headers: IncomingMessage['headers']; body: Buffer }>(
    (resolve, reject) => {
      const outgoing = request(url, { method, headers: { ...headers, host: url.host } }, async (incoming) => {
        const chunks: Buffer[] = []
        for await (const chunk of incoming) chunks.push(chunk as Buffer)
        const { 'transfer-encoding': _, ...rest } = incoming.headers
        resolve({ status: incoming.statusCode ?? 0, headers: rest, body: Buffer.concat(chunks) })
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    },
  )
}
