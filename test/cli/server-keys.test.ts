import { createServer, request as httpRequest } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { configOf, type Home } from './login-support.ts'
import { newHome, runCli, startWorld, type World } from './support.ts'

/** Two servers behind one address, which leads to the first until it is turned. */
let first: World
let other: World
let target: World
let asked: string[]
let address: { url: string; close(): void }
beforeAll(async () => {
  first = await startWorld()
  other = await startWorld()
  const proxy = createServer((request, response) => {
    const { method, headers, url = '' } = request
    asked.push(url)
    request.pipe(
      httpRequest(`${target.url}${url}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers)
        answer.pipe(response)
      }),
    )
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as { port: number }
  address = {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
})
afterAll(async () => {
  address.close()
  await first.close()
  await other.close()
})

let who: Home
beforeEach(async () => {
  target = first
  asked = []
  const { home, env } = await newHome()
  who = { home, env: { ...env, MAYFLY_SERVER: address.url } }
})

const WARNING = () =>
  `mayfly: warning: ${address.url} has none of the keys that it had at your login, so another server may be answering there. Check the address. If an administrator rotated the keys, run`
const cli = (...argv: string[]) => runCli(argv, { env: who.env })
const rotate = (body: object) => first.app.admin('POST', '/v1/admin/keys/rotate', body)
const published = async (world: World) =>
  (await world.app.as(undefined).get('/.well-known/jwks.json')).body.keys.map(
    (key: { kid: string }) => key.kid,
  )
const remembered = async () => (await configOf(who)).profiles.default.server_keys
const asksForKeys = () => asked.filter((url) => url === '/.well-known/jwks.json').length

async function logInWithToken() {
  const end = await runCli(['login'], { env: who.env, stdin: first.agent.token })
  expect(end).toMatchObject({ code: 0, stderr: expect.not.stringContaining('warning') })
}
async function logInWithSecret() {
  const { client_id, client_secret } = first.agent.oidc
  const argv = ['login', '--client-id', client_id]
  expect(await runCli(argv, { env: who.env, stdin: client_secret })).toMatchObject({ code: 0 })
}
async function enroll() {
  const name = `keys-${Math.random().toString(36).slice(2)}`
  const begun = JSON.parse(
    (await cli('enroll', '--name', name, '--no-wait', '--json', '--issuer', first.url)).stdout,
  )
  await first.app.admin('POST', `/v1/admin/pending/${begun.enrollment_id}/approve`)
  expect(await cli('enroll')).toMatchObject({ code: 0 })
}

test.each([
  ['token', logInWithToken, 'mayfly login'],
  ['client secret', logInWithSecret, 'mayfly login'],
  ['enrolled key', enroll, 'mayfly enroll'],
])('a login by %s remembers the keys, and warns when another server answers', async (_, logIn, again) => {
  await logIn()
  expect(await remembered()).toEqual(await published(first))
  target = other
  const { code, stderr } = await cli('get', 'demo')
  expect(code).toBe(4)
  expect(stderr).toContain(`${WARNING()} \`${again}\` again.\n`)
  expect(stderr.split('warning')).toHaveLength(2)
})

test('the keys are not asked for while nothing is suspicious', async () => {
  await logInWithSecret()
  asked = []
  for (const argv of [['get', 'demo'], ['status'], ['get', 'demo']])
    expect(await cli(...argv)).toMatchObject({ code: 0, stderr: '' })
  expect(asksForKeys()).toBe(0)
})

test('keys that are rotated with a grace period are followed without a warning', async () => {
  await logInWithSecret()
  for (const _ of [1, 2, 3]) {
    await rotate({ grace: '1h' })
    const [fresh, ...older] = await published(first)
    expect(older.length).toBeGreaterThan(0)
    expect(await renewed()).toMatchObject({ code: 0, stderr: '' })
    expect(await remembered()).toContain(fresh)
  }
})

/** A command that has to log in, because its cache is empty. */
async function renewed() {
  const { env } = await newHome()
  return runCli(['status'], { env: { ...who.env, XDG_CACHE_HOME: env['XDG_CACHE_HOME'] } })
}

test('keys that are rotated at once warn at each login, until the user logs in again', async () => {
  await logInWithSecret()
  await rotate({})
  const before = await remembered()
  for (const _ of [1, 2]) {
    const { code, stderr } = await renewed()
    expect([code, stderr]).toEqual([0, `${WARNING()} \`mayfly login\` again.\n`])
  }
  expect(await remembered()).toEqual(before)
  await logInWithSecret()
  expect(await remembered()).toEqual(await published(first))
  expect(await renewed()).toMatchObject({ code: 0, stderr: '' })
})

test('`mayfly enroll` remembers the new keys of an agent that is enrolled, and says so', async () => {
  await enroll()
  await rotate({})
  expect((await renewed()).stderr).toBe(`${WARNING()} \`mayfly enroll\` again.\n`)
  expect((await cli('enroll')).stderr).toContain('The keys of the server are others than at your login')
  expect(await remembered()).toEqual(await published(first))
  expect(await renewed()).toMatchObject({ code: 0, stderr: '' })
  expect((await cli('enroll')).stderr).not.toContain('The keys of the server')
})
