import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { callAsPage, newPerson } from '../support/person.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

test('the page runs nothing but its own files, and is in nobody else’s frame', async () => {
  const page = await callAsPage(app, 'GET', '/console')
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).not.toMatch(/unsafe|nonce|\*/)
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ])
    expect(policy.split('; ')).toContain(rule)
  expect(page.headers.get('x-frame-options')).toBe('DENY')
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.text).not.toMatch(/<script(?! type="module" src=)|style=|\son\w+=/)
  const script = await callAsPage(app, 'GET', '/console/console.js')
  expect(script.text).not.toMatch(/innerHTML|insertAdjacent|document\.write|eval\(/)
  expect((await callAsPage(app, 'GET', '/console/nothing.js')).status).toBe(404)
})

test('only a loopback address leads to another, which can have passkeys', async () => {
  const local = await startApp({ ownIssuer: true })
  const { host, port } = new URL(local.url)
  const get = (name: string) => local.raw({ path: '/console', headers: { host: name } })
  const moved = await get(host)
  expect([moved.status, moved.headers['location']]).toEqual([302, `http://localhost:${port}/console`])
  expect((await get(`localhost:${port}`)).status).toBe(200)
  await local.close()
  // A public server may have another name for its proxy.
  expect((await app.raw({ path: '/console', headers: { host: new URL(app.url).host } })).status).toBe(200)
})

test('hands out so many documents of the console a minute', async () => {
  const statuses: number[] = []
  for (const path of ['/console', '/console/console.js', '/console/console.css'])
    for (let n = 0; n < 101; n += 1) statuses.push((await callAsPage(app, 'GET', path)).status)
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0)
  app.advance(60_000)
  expect((await callAsPage(app, 'GET', '/console')).status).toBe(200)
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
