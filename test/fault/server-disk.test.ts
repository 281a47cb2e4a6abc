import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newHome, runCli } from '../cli/support.ts'
import {
  addAgent,
  addBackends,
  CREATES_ROLE,
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
import { LONG } from '../support/long.ts'
import { longTest } from '../support/long-test.ts'
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

  test.each(LONG ? ['sync', 'write'] : ['sync'])(
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

  longTest('removes the upstream account at once when the disk fails after the upstream call', async () => {
    const server = world.server()
    const before = await upstream.roles()
    proxy.arm({ at: 'answered', sees: [CREATES_ROLE, 'COMMIT'] }, () => {
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

  /** Issues until the disk is full, and returns what was issued meanwhile. */
  async function fillDisk(server: ServerProcess): Promise<Issued[]> {
    const issued: Issued[] = []
    fail(`cap ${usedBytes() + 16_384}`)
    const metadata = { filler: 'x'.repeat(4_000) }
    await poll('the disk is full', async () => {
      const reply = await ask(server, 'tok', metadata)
      if (reply.status === 201) issued.push(reply.body)
      return reply.status === 503
    })
    return issued
  }

  longTest(
    'a full disk: the local administrator ends credentials, agents, requests, keys and backends',
    async () => {
      const server = world.server()
      const [db, tok] = [
        await issue(server, agent.token),
        await issue(server, agent.token, { backend: 'tok' }),
      ]
      const doomed = await addAgent(server, 'doomed')
      const lost = await issue(server, doomed.token)
      const { id: request } = await must(server, agent.token, 'POST', '/v1/request', { scopes: ['more'] })
      const [before] = await must<{ keys: object[] }>(
        server,
        undefined,
        'GET',
        '/.well-known/jwks.json',
      ).then(({ keys }) => keys)
      await fillDisk(server)
      const end = async (method: string, path: string, body?: unknown) =>
        (await server.call(undefined, method, path, body)).status
      // What ends nothing is refused, and so leaves the reserve to what does.
      expect(await end('GET', '/v1/admin/agents')).toBe(503)
      expect(await end('DELETE', `/v1/admin/tokens/${tok.id}`)).toBe(204)
      expect(await end('DELETE', `/api/v1/credentials/${db.id}`)).toBe(200)
      expect(await end('DELETE', '/v1/admin/agents/doomed')).toBe(204)
      expect((await server.call(doomed.token, 'GET', '/v1/status')).status).toBe(401)
      expect(await end('POST', `/v1/admin/pending/${request}/reject`, {})).toBe(200)
      expect(await end('POST', '/v1/admin/keys/rotate', {})).toBe(200)
      const after = await must<{ keys: object[] }>(server, undefined, 'GET', '/.well-known/jwks.json')
      expect(after.keys).toHaveLength(1)
      expect(after.keys).not.toContainEqual(before)
      expect(await end('DELETE', '/v1/admin/backends/tok?force=true')).toBe(204)
      const gone = [db, lost].map(({ id }) => roleOf(id))
      await poll(
        'the roles are gone',
        async () => !(await upstream.roles()).some((role) => gone.includes(role)),
      )
      expect(await ready(server)).toBe(false)
      heal()
      await poll('the server is ready again', () => ready(server), { everyMs: 200 })
      // Each act has its own entry and no other: one agent, one request, one rotation, one backend, and their credentials.
      const acts = await world.rows<{ action: string }>(
        "SELECT DISTINCT action FROM audit WHERE actor = 'local' AND action NOT LIKE '%.created' ORDER BY action",
      )
      expect(acts.map(({ action }) => action)).toEqual(
        expect.arrayContaining([
          'agent.deleted',
          'backend.deleted',
          'credential.revoked',
          'enrollment.rejected',
          'keys.rotated',
        ]),
      )
    },
  )

  longTest(
    'a full disk: `agent rm`, `backend rm` and `revoke` of the local administrator still remove',
    async () => {
      const server = world.server()
      const tok = await issue(server, agent.token, { backend: 'tok' })
      const doomed = await addAgent(server, 'doomed')
      await fillDisk(server)
      const { home, env } = await newHome()
      const overSocket = ['--data-dir', world.dataDir]
      const overTcp = ['--server', server.address]
      const mayfly = async (...argv: string[]) => {
        const { code, stderr } = await runCli(argv, { env, cwd: home })
        expect(stderr).toBe('')
        expect(code).toBe(0)
      }
      await mayfly('revoke', tok.id, ...overTcp, '--json')
      await mayfly('agent', 'rm', 'doomed', '--yes', ...overSocket)
      expect((await server.call(doomed.token, 'GET', '/v1/status')).status).toBe(401)
      await mayfly('backend', 'rm', 'tok', '--force', '--yes', ...overSocket)
      expect((await server.call(agent.token, 'GET', '/api/v1/backends/tok')).status).toBe(404)
      expect(await ready(server)).toBe(false)
      rmSync(home, { recursive: true })
    },
  )

  longTest(
    'a full disk: an agent with 10,000 credentials ends at once, and its credentials as there is room',
    async () => {
      const auditor = await must<{ token: string }>(world.server(), undefined, 'POST', '/v1/admin/agents', {
        name: 'auditor',
        scopes: ['admin:tokens:read'],
      })
      const doomed = await addAgent(world.server(), 'doomed')
      const first = await issue(world.server(), doomed.token, { backend: 'tok' })
      const role = await issue(world.server(), doomed.token)
      await world.server().kill()
      // Random ids, so that every row of a slice changes a page of its own.
      await world.rows(`INSERT INTO credentials SELECT
      'cred_' || lower(hex(randomblob(13))), agent_id, agent_name, backend_uid, backend, scopes, state, revocation,
      ttl_ms, created_at, expires_at, upstream_expires_at, ended_at, end_reason, settled_at, due_at + n, attempts,
      stuck_at, NULL, handle
      FROM credentials, (WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9999) SELECT n FROM c)
      WHERE id = '${first.id}'`)
      const server = await world.start()
      await fillDisk(server)
      const reply = await server.call(undefined, 'DELETE', '/v1/admin/agents/doomed')
      expect(reply.status).toBe(204)
      expect((await server.call(doomed.token, 'GET', '/v1/status')).status).toBe(401)
      const some = await world.rows<{ id: string }>(
        `SELECT id FROM credentials WHERE agent_id = '${doomed.id}' ORDER BY random() LIMIT 20`,
      )
      for (const { id } of [first, role, ...some]) {
        const read = await server.call(auditor.token, 'GET', `/api/v1/credentials/${id}`)
        expect(read).toMatchObject({ status: 200, body: { status: 'revoked' } })
      }
      // A crash in between loses none of them.
      await server.kill()
      await world.start()
      heal()
      const left = async () =>
        (
          await world.rows(
            `SELECT 1 FROM credentials WHERE agent_id = '${doomed.id}' AND (ended_at IS NULL OR settled_at IS NULL)`,
          )
        ).length
      await poll('every credential has ended', async () => (await left()) === 0, { withinMs: 60_000 })
      expect(await upstream.roles()).not.toContain(roleOf(role.id))
      const entries = await world.rows<{ n: number; of: number }>(
        "SELECT count(*) AS n, count(DISTINCT credential_id) AS of FROM audit WHERE action = 'credential.revoked'",
      )
      expect(entries).toEqual([{ n: 10_001, of: 10_001 }])
      expect(await world.rows("SELECT key FROM meta WHERE key LIKE 'ending|%'")).toEqual([])
    },
  )
})
