import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestCore, testCore } from '../../../test/support/core.ts'
import { consolePageRoutes } from './console-pages.ts'

let core: TestCore
const files = new Map<string, Buffer>()
let reads = 0
beforeAll(async () => {
  core = await testCore()
  consolePageRoutes(core.http, () => {
    reads += 1
    return files
  })
})
afterAll(() => core.close())

test('a server without a build says what to run, and serves the build as soon as it is there, read once', async () => {
  const get = (url: string) => core.http.server.inject({ url })
  for (const url of ['/console', '/console/agents/a.js']) {
    const page = await get(url)
    expect([page.statusCode, page.headers['content-type']]).toEqual([503, 'text/html; charset=utf-8'])
    expect(page.body).toContain('npm run build')
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
  }
  expect((await get('/console/assets/index-1a.js')).statusCode).toBe(404)
  files.set('index.html', Buffer.from('<html><head></head><body>built</body></html>'))
  files.set('assets/index-1a.js', Buffer.from('code'))
  expect((await get('/console')).body).toContain('built')
  const before = reads
  expect((await get('/console/assets/index-1a.js')).body).toBe('code')
  files.clear()
  expect((await get('/console/x')).body).toContain('built')
  expect(reads).toBe(before)
})
