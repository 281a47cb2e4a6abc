import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CrashPoint } from '../support/crash-at-commit.ts'
import {
  addAgent,
  addBackends,
  issue,
  logIn,
  must,
  openWorld,
  startUpstream,
  type Upstream,
  type World,
} from '../support/fault-world.ts'
import { NoAnswer, poll, type ServerProcess } from '../support/server-process.ts'
import { startTripwireProxy, type Tripwire, type TripwireProxy } from '../support/tripwire-proxy.ts'

const PRELOAD = fileURLToPath(new URL('../support/crash-at-commit.ts', import.meta.url))
const PATH = '/v1/admin/backends/db'
/** In the rehearsal of issues there are others. */
const ADOPT = 'ALTER ROLE SESSION_USER'
const RECORD = 'update "backends" set "rotation"'

/** Where the server is killed, and whether the upstream has the new password by then. */
type Point = readonly [what: string, at: { process: CrashPoint } | { upstream: Tripwire }, isAdopted: boolean]
const ADOPTING: readonly Point[] = [
  ['before the upstream has the new password', { upstream: { at: 'arrival', sees: [ADOPT] } }, false],
  ['after the upstream has the new password', { upstream: { at: 'answered', sees: [ADOPT] } }, true],
]
const POINTS: readonly Point[] = [
  ['before the proposal is stored', { process: { at: 'before', sees: [RECORD] } }, false],
  ['after the proposal is stored', { process: { at: 'after', sees: [RECORD] } }, false],
  ...ADOPTING,
  ['before the configuration has it', { process: { at: 'before', sees: ['backend.root_rotated'] } }, true],
  ['after the configuration has it', { process: { at: 'after', sees: ['backend.root_rotated'] } }, true],
  ['before the reply', { process: { at: 'reply', sees: [`POST ${PATH}/rotate-root`] } }, true],
]

let upstream: Upstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())

describe.each(['sqlite', 'postgres'] as const)('a rotation killed on the way, %s as the store', (dialect) => {
  const login = `mayfly_${dialect}`
  const first = 'the first password'
  let world: World
  let proxy: TripwireProxy
  let control: string
  let token: string

  async function restart(): Promise<ServerProcess> {
    rmSync(control, { force: true })
    return world.start({ env: { CRASH_CONTROL: control } })
  }

  beforeAll(async () => {
    await upstream.sql(`CREATE ROLE ${login} SUPERUSER LOGIN PASSWORD '${first}'`)
    proxy = await startTripwireProxy(upstream.server)
    const databaseUrl = dialect === 'postgres' ? (await upstream.server.createDatabase()).url : undefined
    world = await openWorld({ preload: [PRELOAD], ...(databaseUrl === undefined ? {} : { databaseUrl }) })
    control = join(world.dataDir, 'crash-control')
    const server = await restart()
    await addBackends(server, { ...upstream.config(proxy.port), username: login, password: first })
    token = (await addAgent(server, 'one')).token
  })
  afterAll(async () => {
    await world.close()
    await proxy.close()
  })

  const verifier = async () =>
    (await upstream.sql('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [login]))[0]?.['rolpassword']
  const rotate = () => world.server().call(undefined, 'POST', `${PATH}/rotate-root`)
  const rotated = () =>
    poll('a rotation', async () => {
      const reply = await rotate()
      // While the job, or what a dead node has claimed, is in the way.
      if (reply.status === 409) return undefined
      expect(reply.status, JSON.stringify(reply.body)).toBe(200)
      return reply.body
    })

  test.each(dialect === 'sqlite' ? POINTS : ADOPTING)(
    '%s',
    { timeout: 120_000 },
    async (_, at, isAdopted) => {
      const server = world.server()
      const before = await verifier()
      if ('upstream' in at) proxy.arm(at.upstream, () => void server.kill())
      else writeFileSync(control, JSON.stringify(at.process))
      await expect(rotate()).rejects.toThrow(NoAnswer)
      expect(await server.ended).toEqual({ code: null, signal: 'SIGKILL' })
      expect((await verifier()) !== before).toBe(isAdopted)
      await restart()
      // At once, whichever of the two is valid, and whether the job has been there already.
      await logIn(await issue(world.server(), token))
      expect(await rotated()).toMatchObject({ name: 'db', fields: ['password'], old_ended: true })
      expect(await must(world.server(), undefined, 'GET', PATH)).not.toHaveProperty('rotation')
      const issued = await issue(world.server(), token)
      await logIn(issued)
      await must(world.server(), token, 'DELETE', `/api/v1/credentials/${issued.id}`)
    },
  )

  test('the store holds no password but the one in force, and the first one is refused', async () => {
    const client = new pg.Client({
      host: upstream.server.host,
      port: upstream.server.port,
      user: login,
      password: first,
      database: upstream.database,
    })
    client.on('error', () => undefined)
    await expect(client.connect()).rejects.toMatchObject({ code: '28P01' })
    expect(await world.rows('SELECT name FROM backends WHERE rotation IS NOT NULL')).toEqual([])
  })
})
