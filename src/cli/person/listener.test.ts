import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Listener, listen } from './listener.ts'

const STATE = 'the-state-of-this-login'
let listener: Listener | undefined
afterEach(() => listener?.close())

async function listening(): Promise<URL> {
  listener = await listen(STATE)
  return new URL(listener.redirectUri)
}

interface Asked {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

async function ask(url: URL, { path = '/', method = 'GET', headers = {} }: Asked) {
  const outgoing = request({ host: url.hostname, port: url.port, path, method, headers })
  outgoing.end()
  const [incoming] = await once(outgoing, 'response')
  let text = ''
  for await (const chunk of incoming) text += String(chunk)
  return { status: incoming.statusCode, headers: incoming.headers, text }
}

const answerIs = async (wanted: object) =>
  expect(Object.fromEntries((await listener?.answer) ?? [])).toEqual(wanted)

test('takes the answer of the browser, once, and shows a page without scripts', async () => {
  const url = await listening()
  expect(url.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  const path = `/callback?code=c&state=${STATE}&iss=https%3A%2F%2Fmayfly.example.com`
  const { status, headers, text } = await ask(url, { path })
  expect({ status, text }).toEqual({
    status: 200,
    text: '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Mayfly</title>\n<p>Mayfly has its answer. You may close this tab, and go back to the terminal.</p>\n</html>\n',
  })
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringContaining("default-src 'none'"),
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  })
  await answerIs({ code: 'c', state: STATE, iss: 'https://mayfly.example.com' })
  expect(await ask(url, { path: path.replace('code=c', 'code=other') })).toMatchObject({ status: 409 })
  await answerIs({ code: 'c', state: STATE, iss: 'https://mayfly.example.com' })
})

test.each<[string, number, Asked]>([
  ['another path', 404, { path: `/callback/?code=c&state=${STATE}` }],
  ['a path around it', 404, { path: `/x/../callback?code=c&state=${STATE}` }],
  ['an encoded path', 404, { path: `/%63allback?code=c&state=${STATE}` }],
  ['the root', 404, { path: '/' }],
  ['no state', 400, { path: '/callback?code=c' }],
  ['another state', 400, { path: '/callback?code=c&state=x' }],
  ['a state that begins so', 400, { path: `/callback?code=c&state=${STATE}x` }],
  ['two states', 400, { path: `/callback?state=x&state=${STATE}&code=c` }],
  ['two codes', 400, { path: `/callback?code=a&code=c&state=${STATE}` }],
  ['a form', 405, { path: `/callback?code=c&state=${STATE}`, method: 'POST' }],
  [
    'the name of another host',
    421,
    { path: `/callback?code=c&state=${STATE}`, headers: { host: 'evil.example' } },
  ],
  [
    'another name of this host',
    421,
    { path: `/callback?code=c&state=${STATE}`, headers: { host: 'localhost' } },
  ],
])('refuses %s, and goes on waiting', async (_, status, asked) => {
  const url = await listening()
  const refused = await ask(url, asked)
  expect(refused.status).toBe(status)
  expect(refused.text).not.toContain(STATE)
  await ask(url, { path: `/callback?error=access_denied&state=${STATE}` })
  await answerIs({ error: 'access_denied', state: STATE })
})

test('refuses a request that names two hosts, and what is no HTTP', async () => {
  const url = await listening()
  for (const text of [
    `GET /callback?code=c&state=${STATE} HTTP/1.1\r\nHost: ${url.host}\r\nHost: ${url.host}\r\n\r\n`,
    `GET /callback?code=c&state=${STATE} HTTP/1.1\r\n\r\n`,
    'hello\r\n\r\n',
  ]) {
    const socket = connect(Number(url.port), url.hostname)
    socket.write(text)
    let reply = ''
    for await (const chunk of socket) reply += String(chunk)
    expect(reply).toMatch(/^HTTP\/1\.1 4\d\d /)
  }
  await ask(url, { path: `/callback?code=mine&state=${STATE}` })
  await answerIs({ code: 'mine', state: STATE })
})

test('listens on the loopback alone, and no longer than it is asked to', async () => {
  const url = await listening()
  listener?.close()
  await expect(ask(url, {})).rejects.toThrow('ECONNREFUSED')
})

test('says how to log in without a port where there is none', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  await expect(listen(STATE, port)).rejects.toMatchObject({
    message: 'The command cannot listen on 127.0.0.1 for the browser: the port is taken.',
    hint: expect.stringContaining('mayfly login --device'),
  })
  taken.close()
})
