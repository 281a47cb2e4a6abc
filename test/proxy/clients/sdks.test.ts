import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Value } from 'typebox/value'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { kinds } from '../../../src/backends/index.ts'
import type { HttpUse } from '../../../src/domain/use.ts'
import { type ClientWorld, type Credential, type Handler, startClientWorld } from '../support/client-world.ts'

const PROGRAM = fileURLToPath(new URL('./programs/sdk.mjs', import.meta.url))

interface Sdk {
  readonly type: string
  readonly scope: string
  readonly token: string
  readonly variable: string
  readonly host: string
  /** The header in which the upstream wants the real secret. */
  readonly header: string
  readonly serve: Handler
}

const SDKS: Readonly<Record<string, Sdk>> = {
  anthropic: {
    ...{ type: 'anthropic', scope: 'workspace:developer', variable: 'ANTHROPIC_AUTH_TOKEN' },
    ...{ token: `sk-ant-oat01-${'R'.repeat(40)}`, host: 'api.anthropic.com', header: 'authorization' },
    serve: (request, response) => void answerAnthropic(request, response),
  },
  openai: {
    ...{ type: 'openai', scope: 'proj_abc', variable: 'OPENAI_API_KEY' },
    ...{ token: `sk-svcacct-${'R'.repeat(40)}`, host: 'api.openai.com', header: 'authorization' },
    serve: (request, response) => void answerOpenAi(request, response),
  },
  octokit: {
    ...{ type: 'github', scope: 'acme/shop:issues:write', variable: 'GITHUB_TOKEN' },
    ...{ token: `ghs_${'R'.repeat(36)}`, host: 'api.github.com', header: 'authorization' },
    serve: (request, response) => void answerGitHub(request, response),
  },
}

let world: ClientWorld
const seen: string[] = []
beforeAll(async () => {
  const credentials = Object.values(SDKS).map(credentialOf)
  const upstreams = Object.fromEntries(Object.values(SDKS).map((one) => [one.host, demanding(one)]))
  world = await startClientWorld(credentials, upstreams)
})
afterAll(() => world?.close())
afterEach(() => {
  seen.length = world.misused.length = world.lines.length = 0
})

/** The rules are those of the kind, with the configuration of its example. */
function credentialOf({ type, scope, token, variable }: Sdk): Credential {
  const kind = kinds.find((one) => one.type === type)
  const [example] = (kind?.config as { examples?: readonly object[] } | undefined)?.examples ?? []
  const config = Value.Default(kind?.config as never, structuredClone(example))
  const uses = (kind?.uses?.(config as never, [scope]) ?? []) as readonly HttpUse[]
  if (uses.length === 0) throw new Error(`${type} gives no uses for ${scope}`)
  return { ...{ name: type, type, token, uses }, env: (given) => ({ [variable]: given.token }) }
}

function demanding({ host, token, header, serve }: Sdk): Handler {
  return (request, response) => {
    const given = String(request.headers[header]).replace(/^\w+ /, '')
    seen.push(`${request.method} ${host}${request.url}`)
    if (given === token) serve(request, response)
    else response.writeHead(401, { 'content-type': 'application/json' }).end('{"message":"not the secret"}')
  }
}

async function bodyOf(request: IncomingMessage): Promise<{ stream?: boolean; title?: string }> {
  let text = ''
  for await (const part of request) text += part
  return JSON.parse(text)
}

function json(response: ServerResponse, body: unknown) {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
}

function events(response: ServerResponse, all: readonly string[]) {
  response.setHeader('content-type', 'text/event-stream')
  for (const one of all) response.write(one)
  response.end()
}

async function answerAnthropic(request: IncomingMessage, response: ServerResponse) {
  const { stream } = await bodyOf(request)
  if (!stream) return json(response, { type: 'message', content: [{ type: 'text', text: 'whole' }] })
  const event = (type: string, more: object = {}) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const delta = (text: string) =>
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
  events(response, [
    event('message_start', { message: {} }),
    ...['str', 'ea', 'med'].map(delta),
    event('message_stop'),
  ])
}

async function answerOpenAi(request: IncomingMessage, response: ServerResponse) {
  const { stream } = await bodyOf(request)
  if (!stream) return json(response, { choices: [{ message: { role: 'assistant', content: 'whole' } }] })
  const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`
  events(response, [...['str', 'ea', 'med'].map(chunk), 'data: [DONE]\n\n'])
}

async function answerGitHub(request: IncomingMessage, response: ServerResponse) {
  if (request.method === 'POST') return json(response, { title: 'whole', ...(await bodyOf(request)) })
  const page = new URL(request.url ?? '', 'https://api.github.com').searchParams.get('page')
  const next = 'https://api.github.com/repositories/1/issues?page=2'
  if (page !== '2') response.setHeader('link', `<${next}>; rel="next"`)
  json(response, [{ title: page === '2' ? 'med' : 'strea' }])
}

const WAYS: Readonly<Record<string, (command: readonly string[]) => ReturnType<ClientWorld['run']>>> = {
  'a base URL': (command) => world.run(command),
  HTTPS_PROXY: (command) => world.runForward(command),
}

describe.each(Object.entries(SDKS))('the SDK of %s', (name, { host, token }) => {
  it.each(Object.entries(WAYS))('streams and calls by %s, and is refused all else', async (_, run) => {
    const { stdout, stderr } = await run([process.execPath, PROGRAM, name])
    if (stdout === '') throw new Error(stderr)
    expect(stdout + stderr).not.toContain(token)
    expect(JSON.parse(stdout)).toMatchObject({
      stream: 'streamed',
      call: name === 'octokit' ? 'hello' : 'whole',
      path: { status: 403, error: expect.stringMatching(/rule of the backend/) },
      method: { status: 403, error: expect.stringMatching(/rules? of the backend/) },
    })
    expect(seen.every((one) => one.includes(` ${host}/`))).toBe(true)
    expect(world.lines.filter(({ decision }) => decision === 'refused')).toHaveLength(2)
    expect(world.misused).toEqual([])
  })
})

it('gives the child no secret', () => {
  for (const { token } of Object.values(SDKS)) expect(JSON.stringify(world.env)).not.toContain(token)
})
