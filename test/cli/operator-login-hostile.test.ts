import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { codes, grant, me, type Routes, startFalseServer, TOKEN } from './false-server.ts'
import { configOf, type Home } from './login-support.ts'
import { type CliWish, newHome, runCli, spawnCli } from './support.ts'

let who: Home
let close: (() => Promise<unknown>) | undefined
beforeEach(async () => {
  who = await newHome()
})
afterEach(async () => {
  await close?.()
  close = undefined
  await rm(who.home, { recursive: true, force: true })
})

async function start(routes: Routes = {}) {
  const server = await startFalseServer(routes)
  close = server.close
  return { ...server, env: { ...who.env, MAYFLY_SERVER: server.url } }
}

const logIn = async (routes: Routes, wish: Partial<CliWish> = {}, argv = ['login', '--device']) => {
  const server = await start(routes)
  return { ...(await runCli(argv, { env: server.env, ...wish })), server }
}

const nothingKept = async () => expect(await readdir(who.home)).toEqual([])

/** A token endpoint that answers these in turn, the last one again and again. */
function inTurn(...answers: (readonly [number, unknown] | undefined)[]): Routes {
  let asked = 0
  return {
    'POST /oauth/token': () => answers[Math.min(asked++, answers.length - 1)],
  }
}
const oauth = (error: string) => [400, { error, error_description: 'As it is said.' }] as const

describe('login --device', () => {
  test('shows the page and the code, and asks as often as it may', async () => {
    const { code, stderr, server } = await logIn(inTurn(oauth('authorization_pending'), [200, grant()]))
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        new RegExp(
          `^Open this page in a browser, on any machine:\n\n${server.url}/console/allow\n\nLog in there, and type this code\\. It works once, and ends in 10 min:\n\n {4}WDJB-MJHT\n\nAllow only what you have begun yourself: this command runs on [!-~]+\\.\nLogged in to ${server.url} as alice@example\\.com, an operator\\. The login ends in 12 h, and is stored in .+operator\\.json\\.\n$`,
        ),
      ),
    })
    const [asked] = server.got.filter(({ path }) => path === '/oauth/device_authorization')
    expect(Object.fromEntries(asked?.form ?? [])).toEqual({
      client_id: 'mayfly-cli',
      host: expect.stringMatching(/^[!-~]+$/),
    })
    const [poll] = server.got.filter(({ path }) => path === '/oauth/token')
    expect(Object.fromEntries(poll?.form ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: `mdc_${'d'.repeat(64)}`,
      client_id: 'mayfly-cli',
    })
    expect(server.polls()).toBe(2)
    expect(stderr).not.toContain(TOKEN)
  })

  test('slows down when it is told to, and shows for how long it waits', async () => {
    const since = Date.now()
    const { code, stderr } = await logIn(inTurn(oauth('slow_down'), [200, grant()]), { tty: true })
    expect(code).toBe(0)
    // One second, and then five more.
    expect(Date.now() - since).toBeGreaterThan(6_900)
    expect(stderr).toContain('\r\u001b[2KWaiting until you allow it: 2 s')
  })

  test.each(['authorization_pending', 'slow_down'])(
    'gives up when the code ends, after %s',
    async (error) => {
      const { code, stderr } = await logIn({
        ...inTurn(oauth(error)),
        'POST /oauth/device_authorization': (_, url) => [200, codes(url, { expires_in: 2 })],
      })
      expect({ code, stderr }).toEqual({
        code: 4,
        stderr: expect.stringMatching(
          /\nmayfly: Nobody typed the code in time\. Run the command again for a new one\.\n$/,
        ),
      })
      await nothingKept()
    },
  )

  test.each<[string, number, RegExp]>([
    ['expired_token', 4, /Nobody typed the code in time\./],
    ['access_denied', 5, /The login was not allowed\. Nothing was changed\./],
    ['invalid_grant', 1, /As it is said\./],
  ])('%s ends it', async (error, exit, words) => {
    const { code, stderr, server } = await logIn(inTurn(oauth(error)))
    expect(code).toBe(exit)
    expect(stderr).toMatch(words)
    expect(server.polls()).toBe(1)
    await nothingKept()
  })

  test('goes on while the server is away, and says so once', async () => {
    const { code, stderr, server } = await logIn(
      inTurn(undefined, [503, { error: 'temporarily_unavailable' }], [200, grant()]),
    )
    expect(code).toBe(0)
    expect(stderr.match(/The command goes on asking until the code ends\./g)).toHaveLength(1)
    expect(server.polls()).toBe(3)
  })

  test.each<[string, object]>([
    ['a code that moves the cursor', { user_code: '\x1b[2J\x1b[H' }],
    ['a code that is turned around', { user_code: '\u202eWDJB-MJHT' }],
    ['a code with a line break', { user_code: 'WDJB-MJHT\nrm' }],
    ['a code of another form', { user_code: 'WDJBMJHT' }],
    ['no code', { user_code: undefined }],
    ['a device code with a line break', { device_code: 'a\r\nx: y' }],
    ['a page of another host', { verification_uri: 'https://evil.example/console/allow' }],
    ['a page that is a script', { verification_uri: 'javascript:alert(1)' }],
    ['a page with a title for the terminal', { verification_uri: '\x1b]0;owned\x07' }],
    ['a page with the code in it', { verification_uri: 'http://127.0.0.1/console/allow?code=x' }],
    ['a code that never ends', { expires_in: 1e9 }],
    ['a code that has ended', { expires_in: 0 }],
    ['a life that is no number', { expires_in: '600' }],
    ['no pause', { interval: 0 }],
    ['a pause of a day', { interval: 86_400 }],
  ])('refuses %s', async (_, wrong) => {
    const { code, stderr, server } = await logIn({
      'POST /oauth/device_authorization': (_got, url) => [200, codes(url, wrong)],
    })
    expect(code).toBe(3)
    expect(stderr).toMatch(/^mayfly: [ -~]+\n$/)
    expect(server.polls()).toBe(0)
    await nothingKept()
  })

  test.each<[string, unknown]>([
    ['the token of an agent', grant({ access_token: `ckr_${'0'.repeat(48)}` })],
    ['a token with a line break', grant({ access_token: `${TOKEN}\n` })],
    ['no token', {}],
    ['a list', []],
    ['a token without an end', grant({ expires_in: undefined })],
    ['a token for a year', grant({ expires_in: 31_536_000 })],
  ])('keeps nothing of %s', async (_, body) => {
    const { code, stderr } = await logIn(inTurn([200, body]))
    expect(code).toBe(3)
    expect(stderr).not.toContain('ckr_')
    await nothingKept()
  })

  test.each<[string, object]>([
    ['an agent', me({ kind: 'agent' })],
    ['nobody', me({ id: undefined })],
    ['a person without a session', me({ session: undefined })],
  ])('keeps nothing where the token is of %s', async (_, body) => {
    const { code } = await logIn({ 'GET /v1/admin/me': () => [200, body] })
    expect(code).toBe(3)
    await nothingKept()
  })

  test('a name that steers the terminal is shown harmless', async () => {
    const { code, stderr } = await logIn({
      'GET /v1/admin/me': () => [200, me({ email: undefined, name: 'Al\x1b[31mice\u202e' })],
    })
    expect(code).toBe(0)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be in it
    expect(stderr).not.toMatch(/[\x00-\x09\x0b-\x1f\u202e]/)
    expect((await configOf(who)).profiles.default.operator).not.toHaveProperty('email')
  })

  test('Ctrl-C: 130, and nothing is kept', async () => {
    const server = await start(inTurn(oauth('authorization_pending')))
    const login = spawnCli(['login', '--device'], { env: server.env })
    await login.said('WDJB-MJHT')
    login.child.kill('SIGINT')
    expect(await login.ended).toMatchObject({ code: 130 })
    await nothingKept()
  })
})

describe('a server that relays the requests of another', () => {
  const announced = (more: object): Routes => ({
    'GET /.well-known/openid-configuration': (_, url) => [
      200,
      { issuer: url, jwks_uri: `${url}/jwks`, authorization_endpoint: `${url}/console/allow`, ...more },
    ],
  })

  test.each(['--browser', '--device'])('%s: gets nothing for an issuer that it is not', async (way) => {
    const { code, stderr, server } = await logIn(
      announced({
        issuer: 'https://mayfly.example.com',
        authorization_endpoint: 'https://mayfly.example.com/console/allow',
      }),
      {},
      ['login', way],
    )
    expect(code).toBe(5)
    expect(stderr).toContain(`says that it is https://mayfly.example.com`)
    expect(stderr).toContain(`mayfly login ${way} --issuer https://mayfly.example.com`)
    expect(server.got.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test.each([
    'https://mayfly.example.com/console/allow',
    'http://user:secret@127.0.0.1/console/allow',
    'file:///etc/passwd',
    '--help',
    42,
  ])('opens no page that is not its own: %s', async (endpoint) => {
    const { code, stderr } = await logIn(announced({ authorization_endpoint: endpoint }), {}, [
      'login',
      '--browser',
    ])
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: /page that is not its own/ })
  })

  test('where persons do not log in with the command, it says so, and a terminal asks for a token at once', async () => {
    const routes = announced({ authorization_endpoint: undefined })
    for (const way of ['--browser', '--device']) {
      const { code, stderr } = await logIn(routes, {}, ['login', way])
      expect(code).toBe(5)
      expect(stderr).toContain('Persons do not log in with the command')
      await close?.()
    }
    const { stderr } = await logIn(routes, { tty: true, stdin: '\x03' }, ['login'])
    expect(stderr).toBe('Token: \n')
  })
})

/** The address that the command prints, with its parameters. */
const addressIn = (text: string) => new URL(/^(http\S+\/console\/allow\?\S+)$/m.exec(text)?.[1] ?? '')

describe('login --browser', () => {
  test('foreign pages neither finish nor stop it, and the code goes with its verifier', async () => {
    const server = await start()
    const login = spawnCli(['login', '--browser', '--json'], { env: server.env })
    const address = addressIn(await login.said('code_challenge'))
    const asked = Object.fromEntries(address.searchParams)
    expect(asked).toEqual({
      response_type: 'code',
      client_id: 'mayfly-cli',
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[\w-]{43}$/),
      host: expect.stringMatching(/^[!-~]+$/),
    })
    const { redirect_uri = '', state = '', code_challenge } = asked
    for (const query of ['code=evil', 'code=evil&state=x', `code=evil&state=${state}&state=${state}`])
      expect((await fetch(`${redirect_uri}?${query}`)).status).toBe(400)
    const answer = new URLSearchParams({ code: 'mac_good', state, iss: server.url })
    expect((await fetch(`${redirect_uri}?${answer}`)).status).toBe(200)
    const { code, stdout } = await login.ended
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      operator: { email: 'alice@example.com', name: 'Alice' },
      login: 'browser',
      kept_in: 'file',
    })
    const [redeemed] = server.got.filter(({ path }) => path === '/oauth/token')
    expect(Object.fromEntries(redeemed?.form ?? [])).toEqual({
      grant_type: 'authorization_code',
      code: 'mac_good',
      redirect_uri,
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
      client_id: 'mayfly-cli',
    })
    const verifier = new TextEncoder().encode(redeemed?.form.get('code_verifier') ?? '')
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', verifier)).toString('base64url')
    expect(digest).toBe(code_challenge)
  })

  test.each<[string, Record<string, string>, number, RegExp]>([
    ['of another server', { code: 'c', iss: 'https://evil.example' }, 5, /The answer is of another server/],
    ['of no server', { code: 'c' }, 5, /The answer is of another server/],
    ['that is a refusal', { error: 'access_denied', iss: '=' }, 5, /The login was not allowed\./],
    ['that is an error', { error: 'server_error', iss: '=' }, 5, /refused the login \(server_error\)\./],
    ['with an error of its own', { error: '\x1b[2Jx', iss: '=' }, 5, /The server refused the login\./],
    ['with a code and an error', { error: 'x', code: 'c', iss: '=' }, 5, /refused the login \(x\)\./],
    ['without a code', { iss: '=' }, 5, /The server refused the login\./],
    ['with a code of two lines', { code: 'a\nb', iss: '=' }, 5, /The server refused the login\./],
  ])('an answer %s ends it, and nothing is sent', async (_, given, exit, words) => {
    const server = await start()
    const login = spawnCli(['login', '--browser'], { env: server.env })
    const { redirect_uri = '', state = '' } = Object.fromEntries(
      addressIn(await login.said('code_challenge')).searchParams,
    )
    const iss = given['iss'] === '=' ? { iss: server.url } : {}
    await fetch(`${redirect_uri}?${new URLSearchParams({ ...given, ...iss, state })}`)
    const { code, stderr } = await login.ended
    expect(code).toBe(exit)
    expect(stderr).toMatch(words)
    expect(server.polls()).toBe(0)
    await nothingKept()
  })

  test('Ctrl-C: 130, and the port is free again', async () => {
    const server = await start()
    const login = spawnCli(['login', '--browser'], { env: server.env })
    const address = addressIn(await login.said('code_challenge'))
    login.child.kill('SIGINT')
    expect(await login.ended).toMatchObject({ code: 130 })
    await expect(fetch(address.searchParams.get('redirect_uri') ?? '')).rejects.toThrow()
  })

  test('over SSH it opens nothing, and says what to do instead', async () => {
    const server = await start()
    const env = { ...server.env, DISPLAY: ':0', SSH_CONNECTION: '192.0.2.7 1 192.0.2.8 22' }
    const login = spawnCli(['login', '--browser'], { env })
    expect(await login.said('code_challenge')).toContain('use `mayfly login --device` instead')
    login.child.kill('SIGINT')
    await login.ended
  })

  test('gives up after ten minutes', async () => {
    const server = await start()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let said = ''
      const login = runCli(['login', '--browser'], {
        env: server.env,
        onSaid: (text) => {
          said += text
        },
      })
      while (!said.includes('code_challenge')) await new Promise((done) => setImmediate(done))
      await new Promise((done) => setImmediate(done))
      vi.advanceTimersByTime(600_000)
      expect(await login).toMatchObject({
        code: 4,
        stderr: /Nobody allowed the login within 10 minutes\. Run the command again\.\n$/,
      })
    } finally {
      vi.useRealTimers()
    }
  })
})

test('a disk that is full: the login ends at the server, since nobody could use it', async () => {
  const server = await start()
  const end = await runCli(['login', '--device'], {
    env: { ...server.env, XDG_CONFIG_HOME: join('/dev/full', 'config') },
  })
  expect(end.code).toBe(1)
  expect(server.got.filter(({ method }) => method === 'DELETE')).toMatchObject([
    { authorization: `Bearer ${TOKEN}` },
  ])
})

test.each([60, 200])('with %i columns no line of the wait is wider', async (columns) => {
  const server = await start({
    ...inTurn(oauth('authorization_pending'), oauth('authorization_pending'), [200, grant()]),
  })
  const { stderr } = await runCli(['login', '--device'], { env: server.env, tty: true, columns })
  const progress = stderr.match(/Waiting until[^\r\n]*/g) ?? []
  expect(progress.length).toBeGreaterThan(0)
  for (const line of progress) expect(line.length).toBeLessThan(columns)
  // What is copied stands alone on its line.
  expect(stderr).toMatch(/\n {4}WDJB-MJHT\n/)
})

test('the token is in a file of its own, for this user alone', async () => {
  const { code } = await logIn({})
  expect(code).toBe(0)
  const directory = join(who.home, 'config/mayfly/secrets')
  expect(await readdir(directory)).toEqual(['default.operator.json'])
  expect(JSON.parse(await readFile(join(directory, 'default.operator.json'), 'utf8'))).toMatchObject({
    kind: 'operator',
    token: TOKEN,
  })
  expect(JSON.stringify(await configOf(who))).not.toContain(TOKEN)
})
