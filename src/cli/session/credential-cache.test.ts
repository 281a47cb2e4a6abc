import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newHome, startWorld, type World } from '../../../test/cli/support.ts'
import { createOutput } from '../frame/output.ts'
import type { Context } from '../frame/verb.ts'
import { cachedCredential, dropCached } from './credential-cache.ts'
import { openAgentSession, type Session } from './open.ts'

let world: World
let context: Context
let session: Session
let folder: string
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

async function contextFor(
  token: string,
  home: string,
  env: Record<string, string>,
  ahead = 0,
): Promise<Context> {
  const { stdin, stdout, stderr } = process
  const all = { ...env, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: token }
  return {
    stdin,
    stdout,
    stderr,
    env: all,
    cwd: home,
    home,
    platform: 'linux',
    now: () => Date.now() + ahead,
    signal: new AbortController().signal,
    globals: {},
    verbs: [],
    out: createOutput({ stdout, stderr, env: all }, false),
  }
}
let home: string
let env: Record<string, string>
beforeEach(async () => {
  const made = await newHome()
  home = made.home
  env = made.env
  context = await contextFor(world.agent.token, home, env)
  session = await openAgentSession(context)
  folder = join(home, 'cache/mayfly/credentials')
})

describe('the same request', () => {
  test('made several times at once, issues once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => cachedCredential(session, context, { backend: 'demo', ttl: '7m' })),
    )
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
  })

  test('gets the same credential, kept for this user alone', async () => {
    const first = await cachedCredential(session, context, { backend: 'demo', scopes: ['a'], ttl: '5m' })
    const again = await cachedCredential(session, context, { ttl: '5m', scopes: ['a'], backend: 'demo' })
    expect(again).toEqual(first)
    const [name = ''] = await readdir(folder)
    expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600)
    expect(name).not.toContain('demo')
    expect(await readFile(join(folder, name), 'utf8')).not.toContain(world.agent.token)
  })

  test('of another scope, ttl or login, or instead of one that is of no more use, gets its own', async () => {
    const other = await world.app.newAgent({ scopes: ['demo:*'] })
    const theirs = await contextFor(other.token, home, env)
    const first = await cachedCredential(session, context, { backend: 'demo' })
    const ids = [
      first.id,
      ...[
        await cachedCredential(session, context, { backend: 'demo', scopes: ['a'] }),
        await cachedCredential(session, context, { backend: 'demo', ttl: '5m' }),
        await cachedCredential(await openAgentSession(theirs), theirs, { backend: 'demo' }),
        await cachedCredential(
          session,
          context,
          { backend: 'demo' },
          { hasEnded: async (id) => id === first.id },
        ),
      ].map(({ id }) => id),
    ]
    expect(new Set(ids).size).toBe(5)
  })

  test('gets a new one before the old one ends', async () => {
    const request = { backend: 'demo', ttl: '10m' }
    const { id } = await cachedCredential(session, context, request)
    const at = async (minutes: number, minRemainingMs?: number) => {
      const later = await contextFor(world.agent.token, home, env, minutes * 60_000)
      const options = minRemainingMs === undefined ? {} : { minRemainingMs }
      return (await cachedCredential(session, later, request, options)).id
    }
    expect(await at(8.5)).toBe(id)
    // Wanting more than a quarter of its life would mean a new one all the time.
    expect(await at(5, 3_600_000)).toBe(id)
    expect(await at(9.5)).not.toBe(id)
  })
})

test.each(['', '{', 'null', '{"identity":"x"}', '{"identity":"x","credential":{"token":1}}'])(
  'ignores a damaged entry: %j',
  async (text) => {
    const { id } = await cachedCredential(session, context, { backend: 'demo' })
    const [name = ''] = await readdir(folder)
    await writeFile(join(folder, name), text)
    expect((await cachedCredential(session, context, { backend: 'demo' })).id).not.toBe(id)
  },
)

test('returns a credential even when it cannot be cached', async () => {
  await writeFile(join(home, 'cache'), 'in the way')
  expect((await cachedCredential(session, context, { backend: 'demo' })).token).toMatch(/^ey/)
})

test('dropping takes out what matches, and returns it', async () => {
  const kept = await cachedCredential(session, context, { backend: 'demo', scopes: ['a'] })
  const gone = await cachedCredential(session, context, { backend: 'demo', scopes: ['b'] })
  expect(await dropCached(context, ({ id }) => id === gone.id)).toEqual([gone])
  expect(await dropCached(context, ({ id }) => id === gone.id)).toEqual([])
  expect(await cachedCredential(session, context, { backend: 'demo', scopes: ['a'] })).toEqual(kept)
})
