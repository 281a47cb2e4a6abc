import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  addAgent,
  addBackends,
  CREDENTIALS,
  type Issued,
  issue,
  logIn,
  must,
  openWorld,
  roleOf,
  type StoredCredential,
  startUpstream,
  type Upstream,
  untilSettled,
  type World,
} from '../support/fault-world.ts'
import { poll, type ServerProcess } from '../support/server-process.ts'
import { startTripwireProxy, type TripwireProxy } from '../support/tripwire-proxy.ts'

const SHIM = fileURLToPath(new URL('../support/fault-disk.c', import.meta.url))
const canCompile = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0

describe.skipIf(!canCompile)('the server on a failing disk (needs Linux and cc)', () => {
  let upstream: Upstream
  let proxy: TripwireProxy
  let work: string
  let library: string
  let world: World
  let control: string
  let agent: { id: string; token: string }

  beforeAll(async () => {
    work = mkdtempSync(join(tmpdir(), 'mayfly-disk-'))
    library = join(work, 'fault-disk.so')
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, SHIM, '-ldl'])
    upstream = await startUpstream()
    proxy = await startTripwireProxy(upstream.server)
  })
  afterAll(async () => {
    await proxy.close()
    await upstream.close()
    rmSync(work, { recursive: true })
  })
  beforeEach(async () => {
    const dataDir = mkdtempSync(join(work, 'data-'))
    control = `${dataDir}.control`
    const env = { LD_PRELOAD: library, FAULT_DIRECTORY: `${dataDir}/`, FAULT_CONTROL: control }
    world = await openWorld({ dataDir, env })
    const server = await world.start()
    await addBackends(server, upstream.config(proxy.port))
    agent = await addAgent(server, 'agent')
  })
  afterEach(async () => {
    rmSync(control, { force: true })
    await world.close()
  })

  const fail = (how: string) => writeFileSync(control, how)
  const heal = () => rmSync(control, { force: true })
  const ready = async (server: ServerProcess) =>
    (await server.call(undefined, 'GET', '/readyz')).status === 200
  const ask = (server: ServerProcess, backend: string, metadata = {}) =>
    server.call<Issued>(agent.token, 'POST', '/api/v1/credentials', { backend, ttl: '1h', metadata })
  const usedBytes = () =>
    readdirSync(world.dataDir).reduce((sum, name) => sum + statSync(join(world.dataDir, name)).size, 0)

  /** After a kill, every acknowledged credential exists and works, and the upstream has no other account. */
  async function checkAll(kept: readonly Issued[], ended: readonly Issued[] = []): Promise<void> {
    await world.server().kill()
    const server = await world.start()
    for (const { id, backend } of kept) {
      const record = await must(server, agent.token, 'GET', `/api/v1/credentials/${id}`)
      expect(record).toMatchObject({ id, backend, status: 'active' })
    }
    for (const one of kept) if (one.backend === 'db') await logIn(one)
    await untilSettled(world)
    expect(await server.terminate()).toEqual({ code: 0, signal: null })
    const rows = await world.rows<StoredCredential>(CREDENTIALS)
    const active = rows.filter((row) => row.state === 'active').map((row) => row.id)
    expect(active.sort()).toEqual(kept.map(({ id }) => id).sort())
    const entries = await world.rows<{ credential_id: string }>(
      "SELECT credential_id FROM audit WHERE action = 'credential.issued'",
    )
    const issued = [...kept, ...ended].map(({ id }) => id).sort()
    expect(entries.map((entry) => entry.credential_id).sort()).toEqual(issued)
    const held = new Set(await upstream.roles())
    for (const row of rows)
      expect(held.has(roleOf(row.id)), row.id).toBe(row.backend === 'db' && row.state === 'active')
  }

  test.each(['sync', 'write'])(
    '%s fails: acknowledges nothing, is not ready, and recovers by itself',
    async (how) => {
      const server = world.server()
      const kept = [await issue(server, agent.token), await issue(server, agent.token, { backend: 'tok' })]
      fail(how)
      for (const backend of ['tok', 'db', 'tok']) {
        const reply = await ask(server, backend)
        expect(reply).toMatchObject({ status: 503, body: { error: { code: 'audit_unavailable' } } })
      }
      expect(await ready(server)).toBe(false)
      expect((await server.call(undefined, 'GET', '/health')).status).toBe(200)
      const revoked = await server.call(agent.token, 'DELETE', `/api/v1/credentials/${kept[0]?.id}`)
      expect(revoked).toMatchObject({ status: 503, body: { error: { code: 'store_unavailable' } } })
      heal()
      await poll('the server is ready again', () => ready(server), { everyMs: 200 })
      kept.push(await issue(server, agent.token), await issue(server, agent.token, { backend: 'tok' }))
      await checkAll(kept)
    },
  )

  test('removes the upstream account at once when the disk fails after the upstream call', async () => {
    const server = world.server()
    const before = await upstream.roles()
    proxy.arm({ at: 'answered', sees: ['CREATE ROLE', 'COMMIT'] }, () => {
      fail('sync')
      proxy.release()
    })
    const reply = await ask(server, 'db')
    expect(reply).toMatchObject({ status: 503, body: { error: { code: 'audit_unavailable' } } })
    expect(await upstream.roles()).toEqual(before)
    expect(await ready(server)).toBe(false)
    heal()
    await poll('the server is ready again', () => ready(server), { everyMs: 200 })
    await checkAll([await issue(server, agent.token)])
  })

  test('a full disk: issues nothing, but still revokes', async () => {
    const server = world.server()
    const kept = [await issue(server, agent.token), await issue(server, agent.token, { backend: 'tok' })]
    const ended = [await issue(server, agent.token), await issue(server, agent.token, { backend: 'tok' })]
    fail(`cap ${usedBytes() + 16_384}`)
    const metadata = { filler: 'x'.repeat(4_000) }
    await poll('the disk is full', async () => {
      const reply = await ask(server, 'tok', metadata)
      if (reply.status === 201) kept.push(reply.body)
      else expect(reply).toMatchObject({ status: 503, body: { error: { code: 'audit_unavailable' } } })
      return reply.status === 503
    })
    expect(await ready(server)).toBe(false)
    expect((await ask(server, 'db')).status).toBe(503)
    for (const { id, backend } of ended) {
      const reply = await server.call(agent.token, 'DELETE', `/api/v1/credentials/${id}`)
      expect(reply).toMatchObject({
        status: 200,
        body: { revoked: true, upstream: backend === 'db' ? 'revoked' : 'expires' },
      })
    }
    heal()
    await poll('the server is ready again', () => ready(server), { everyMs: 200 })
    kept.push(await issue(server, agent.token))
    await checkAll(kept, ended)
  })
})
