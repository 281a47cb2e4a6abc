import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CrashPoint } from '../support/crash-at-commit.ts'
import { addAgent, issue, must, openWorld, type Row, type World } from '../support/fault-world.ts'
import { LONG } from '../support/long.ts'
import { startPostgres } from '../support/postgres.ts'
import { ROTATING, type RotatingUpstream } from '../support/rotating-upstreams.ts'
import { NoAnswer, poll, type ServerProcess } from '../support/server-process.ts'
import { startTripwireProxy, type Tripwire, type TripwireProxy } from '../support/tripwire-proxy.ts'

const PRELOAD = fileURLToPath(new URL('../support/crash-at-commit.ts', import.meta.url))
const PATH = '/v1/admin/backends/db'
const ROTATE = `${PATH}/rotate-root`
const RECORD = 'update "backends" set "rotation"'
const STATE = ['"meta"', 'state.be_']

const ADOPTED = 'after the upstream has the new secret'
const BEFORE_COMMIT = 'before the configuration has it'

type Kind = keyof typeof ROTATING
interface Point {
  readonly what: string
  readonly at: { readonly process: CrashPoint } | { readonly upstream: Tripwire }
  /** What the upstream accepts is another than before, by the time at which the server is killed. */
  readonly isChanged: boolean
  /** The upstream has made a secret that Mayfly cannot know of: a person removes it, as the refusal says. */
  readonly isLost?: boolean
}

/** Where the server is killed, in the order of a rotation. */
function pointsOf(kind: Kind): readonly Point[] {
  const { make, adopt, keep, finish } = ROTATING[kind].steps
  const isMade = make !== undefined
  const process = (at: CrashPoint['at'], ...sees: string[]) => ({ process: { at, sees } })
  const arrives = (sees: readonly string[]) => ({ upstream: { at: 'arrival', sees } }) as const
  const answered = (sees: readonly string[]) => ({ upstream: { at: 'answered', sees } }) as const
  const point = (what: string, at: Point['at'], isChanged = true): Point => ({ what, at, isChanged })
  return [
    ...(isMade
      ? [
          point('before the upstream makes the new secret', arrives(make), false),
          { ...point('after the upstream has made it', answered(make)), isLost: true },
          { ...point('before Mayfly has recorded that', process('before', ...STATE)), isLost: true },
          point('after Mayfly has recorded that', process('after', ...STATE)),
        ]
      : []),
    point('before the proposal is stored', process('before', RECORD), isMade),
    point('after the proposal is stored', process('after', RECORD), isMade),
    ...(adopt ? [point('before the upstream has the new secret', arrives(adopt), false)] : []),
    ...(adopt ? [point(ADOPTED, answered(adopt))] : []),
    ...(keep ? [point('before the upstream has saved it', arrives(keep))] : []),
    point(BEFORE_COMMIT, process('before', 'backend.root_rotated')),
    point('after the configuration has it', process('after', 'backend.root_rotated')),
    ...(finish ? [point('before the upstream ends the old secret', arrives(finish))] : []),
    ...(finish ? [point('after the upstream has ended it', answered(finish))] : []),
    point('before the reply', process('reply', `POST ${ROTATE}`)),
  ]
}

/** Where the server is killed in each run; everywhere in a long one. The broker alone needs some seconds to start. */
const SAMPLE: Readonly<Record<Kind, readonly string[]>> = {
  postgres: ['after the proposal is stored', ADOPTED, BEFORE_COMMIT],
  mysql: [],
  redis: [ADOPTED],
  rabbitmq: [],
  ldap: [],
  aws: ['after the configuration has it'],
}

type Dialect = 'sqlite' | 'postgres'
const sampleOf = (kind: Kind, dialect: Dialect) =>
  pointsOf(kind)
    .filter(({ what }) => LONG || SAMPLE[kind].includes(what))
    // The points inside the process are those of SQLite as the store.
    .filter(({ at }) => dialect === 'sqlite' || 'upstream' in at)

/** On PostgreSQL what a dead node has claimed lasts a while. */
const CASES: readonly (readonly [Kind, Dialect])[] = [
  ...Object.keys(ROTATING).map((kind) => [kind as Kind, 'sqlite'] as const),
  ...(LONG ? [['postgres', 'postgres'] as const] : []),
].filter(([kind, dialect]) => sampleOf(kind, dialect).length > 0)

describe.each(CASES)('a rotation of %s killed on the way, %s as the store', (kind, dialect) => {
  const { fields, start, issuesInSteps = false } = ROTATING[kind]
  let upstream: RotatingUpstream
  let store: Awaited<ReturnType<typeof startPostgres>> | undefined
  let world: World
  let proxy: TripwireProxy
  let control: string
  let token: string

  async function restart(): Promise<ServerProcess> {
    rmSync(control, { force: true })
    return world.start({ env: { CRASH_CONTROL: control } })
  }

  beforeAll(async () => {
    upstream = await start()
    proxy = await startTripwireProxy(upstream, upstream.isAnswered ?? (({ length }) => length > 0))
    store = dialect === 'postgres' ? await startPostgres() : undefined
    const databaseUrl = (await store?.createDatabase())?.url
    world = await openWorld({ preload: [PRELOAD], ...(databaseUrl === undefined ? {} : { databaseUrl }) })
    control = join(world.dataDir, 'crash-control')
    const server = await restart()
    const config = upstream.config(proxy.port)
    await must(server, undefined, 'POST', '/v1/admin/backends', { type: kind, name: 'db', config })
    token = (await addAgent(server, 'one')).token
  })
  afterAll(async () => {
    await world.close()
    await proxy.close()
    await upstream.close()
    await store?.stop()
  })

  const rotate = () => world.server().call(undefined, 'POST', ROTATE)
  const rotated = () =>
    poll(
      'a rotation',
      async () => {
        const { status, body } = await rotate()
        // While the job, what a dead node has claimed, or a key that it may be about to use is in the way.
        if (status === 409 || /try again in a minute/.test(JSON.stringify(body))) return undefined
        expect(status, JSON.stringify(body)).toBe(200)
        return body
      },
      { everyMs: 200 },
    )
  /** At once, but where an issue of several requests may have met the very moment at which the job replaced the secret. */
  const issueNow = () =>
    poll('an issue', () =>
      issue(world.server(), token).catch((error: Error) => {
        if (issuesInSteps && error.message.includes('backend_unavailable')) return undefined
        throw error
      }),
    )
  async function issueAndLogIn() {
    const issued = await issueNow()
    await upstream.logIn(issued)
    await must(world.server(), token, 'DELETE', `/api/v1/credentials/${issued.id}`)
  }

  test.each(sampleOf(kind, dialect))('$what', { timeout: 120_000 }, async ({ at, isChanged, isLost }) => {
    const server = world.server()
    const before = await upstream.secrets()
    if ('upstream' in at) proxy.arm(at.upstream, () => void server.kill())
    else writeFileSync(control, JSON.stringify(at.process))
    await expect(rotate()).rejects.toThrow(NoAnswer)
    expect(await server.ended).toEqual({ code: null, signal: 'SIGKILL' })
    const then = await upstream.secrets()
    expect(String(then) !== String(before)).toBe(isChanged)
    await restart()
    // Whichever of the two is valid, and whether the job has been there already.
    await issueAndLogIn()
    if (isLost === true) {
      const { body } = await rotate()
      const lost = then.find((one) => !before.includes(one)) ?? ''
      expect((body as { error: Row }).error['message']).toContain(lost)
      expect(await upstream.secrets()).toEqual(then)
      await upstream.remove?.(lost)
    }
    expect(await rotated()).toMatchObject({ name: 'db', fields, old_ended: true })
    expect(await must(world.server(), undefined, 'GET', PATH)).not.toHaveProperty('rotation')
    const after = await upstream.secrets()
    expect([after.length, before.includes(after[0] ?? '')]).toEqual([1, false])
    await issueAndLogIn()
  })

  test('the store holds no secret but the one in force, and the first one is refused', async () => {
    expect(await upstream.acceptsFirst()).toBe(false)
    expect(await world.rows('SELECT name FROM backends WHERE rotation IS NOT NULL')).toEqual([])
  })
})
