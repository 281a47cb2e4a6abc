import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb, filesOfPage } from '../support/built-web.ts'
import { callAsPage, newPerson } from '../support/person.ts'

let app: TestApp
beforeAll(async () => {
  await buildWeb()
  app = await startApp()
})
afterAll(() => app.close())

test('the page runs nothing but its own files, and is in nobody else’s frame', async () => {
  const page = await callAsPage(app, 'GET', '/console')
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).not.toMatch(/unsafe|\*/)
  const nonce = /'nonce-([A-Za-z0-9+/]{22}==)'/.exec(policy)?.[1] ?? 'none'
  // The whole of it: what is allowed beside this would be a hole.
  expect(policy.split('; ').sort()).toEqual(
    [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "connect-src 'self'",
      "font-src 'self'",
      "img-src 'self' data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].sort(),
  )
  expect(page.headers.get('x-frame-options')).toBe('DENY')
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.text).toContain(`<meta name="csp-nonce" content="${nonce}">`)
  expect(page.text).not.toMatch(
    /<script(?! type="module" crossorigin src="\/console\/)|<style|style=|\son\w+=/,
  )
  expect((await callAsPage(app, 'GET', '/console')).headers.get('content-security-policy')).not.toBe(policy)
})

test.each([
  '/console/',
  '/console/agents/a.js',
  '/console/credentials?agent=x&state=live',
  '/console/assets',
  '/console//x',
  '/console/%2e%2e/x',
  `/console/${'a/'.repeat(100)}`,
])('%s is the page, whatever it is called', async (path) => {
  const page = await callAsPage(app, 'GET', path)
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(page.text).toContain('<meta name="csp-nonce"')
})

test.each([
  '/console/assets/',
  '/console/assets/nothing.js',
  '/console/assets/..%2findex.html',
  '/console/assets/%2e%2e%2f%2e%2e%2fpackage.json',
  '/console/assets/x/y.js',
  '/consoles',
  '/Console',
])('%s is nothing', async (path) => {
  const { status, headers, text } = await app.raw({ path })
  expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8'])
  expect(headers['cache-control']).toBe('no-store')
  expect(JSON.parse(text).error.code).toBe('not_found')
})

test('files of the page come packed as the browser takes them, and may be kept for ever', async () => {
  const [script] = (await filesOfPage()).filter((path) => path.endsWith('.js'))
  const get = (accepted?: string) =>
    app.raw({
      path: script ?? '',
      ...(accepted === undefined ? {} : { headers: { 'accept-encoding': accepted } }),
    })
  const plain = await get()
  expect(plain).toMatchObject({
    status: 200,
    headers: {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding',
    },
  })
  expect(plain.headers['content-encoding']).toBeUndefined()
  for (const coding of ['gzip', 'br']) {
    expect((await get(coding)).headers['content-encoding']).toBe(coding)
    const reply = await fetch(`${app.url}${script}`, { headers: { 'accept-encoding': coding } })
    expect(await reply.text()).toBe(plain.text)
  }
  expect((await app.raw({ path: script ?? '', method: 'POST' })).status).toBe(405)
})

test('only a loopback address leads to another, which can have passkeys; it keeps the path', async () => {
  const local = await startApp({ ownIssuer: true })
  const { host, port } = new URL(local.url)
  const get = (path: string, name: string) => local.raw({ path, headers: { host: name } })
  for (const path of [
    '/console',
    '/console/agents/a.js?x=%2F',
    '/console//evil.test/',
    '/console/@evil.test',
  ]) {
    const moved = await get(path, host)
    expect([moved.status, moved.headers['location']]).toEqual([302, `http://localhost:${port}${path}`])
    expect((await get(path, `localhost:${port}`)).status).toBe(200)
  }
  // A browser never asks a server for a whole address.
  const whole = await get('http://evil.test/console/x', host)
  expect(whole.headers['location'] ?? `http://localhost:${port}/console/x`).toBe(
    `http://localhost:${port}/console/x`,
  )
  await local.close()
  // A public server may have another name for its proxy.
  expect((await app.raw({ path: '/console', headers: { host: new URL(app.url).host } })).status).toBe(200)
})

test('hands out so many documents of the console a minute', async () => {
  const { server } = app.app.http
  const count = async (path: string, most: number) => {
    let given = 0
    const { host } = new URL(app.url)
    while (given < most && (await server.inject({ url: path, headers: { host } })).statusCode === 200)
      given += 1
    return given
  }
  app.advance(60_000)
  const pages = await count('/console/agents', 1_000)
  expect(pages).toBeGreaterThanOrEqual(300)
  expect(pages).toBeLessThan(1_000)
  const [script = ''] = await filesOfPage()
  const files = await count(script, 10_000)
  expect(files).toBeGreaterThanOrEqual(3_000)
  expect(files).toBeLessThan(10_000)
  app.advance(60_000)
  expect((await callAsPage(app, 'GET', '/console')).status).toBe(200)
})

test('a server whose console is off says so, logs nobody in, and takes no session', async () => {
  const person = await newPerson(app, { passkey: false })
  const off = await startApp({ argv: { console: 'off' } })
  for (const [method, path] of [
    ['GET', '/console'],
    ['GET', '/console/agents/a.js'],
    ['GET', '/console/assets/index.js'],
    ['POST', '/v1/console/login/link'],
    ['POST', '/v1/console/login/options'],
    ['POST', '/v1/console/login/passkey'],
    ['POST', '/v1/console/logout'],
    ['POST', '/v1/console/passkeys'],
    ['POST', '/v1/console/passkeys/options'],
  ] as const) {
    const reply = await off.raw({ method, path })
    expect([path, reply.status]).toEqual([path, 404])
    expect(JSON.parse(reply.text).error).toMatchObject({
      code: 'not_found',
      message: 'This server has no console: its setting console is off.',
    })
  }
  const link = await off.local.post('/v1/admin/console/links')
  expect([link.status, link.body.error.code]).toEqual([404, 'not_found'])
  const asked = await callAsPage(off, 'GET', '/v1/admin/me', undefined, person.headers())
  expect([asked.status, asked.body.error.message]).toEqual([
    401,
    'This server has no console, and takes no sessions.',
  ])
  expect((await off.local.get('/v1/admin/me')).status).toBe(200)
  await off.close()
})

test('begins so many logins a minute for one address', async () => {
  const begin = async () => (await callAsPage(app, 'POST', '/v1/console/login/options')).status
  let begun = 0
  // What a slow machine spends on them makes room for a few more.
  while ((await begin()) === 200 && begun < 1_000) begun += 1
  expect(begun).toBeGreaterThanOrEqual(300)
  expect(begun).toBeLessThan(1_000)
})

test('gives one session so many challenges a minute', async () => {
  const person = await newPerson(app, { passkey: false })
  const begin = async () => (await person.call('POST', '/v1/console/passkeys/options')).status
  let begun = 0
  while ((await begin()) === 200 && begun < 300) begun += 1
  expect(begun).toBeGreaterThanOrEqual(60)
  expect(begun).toBeLessThan(300)
})
