import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { isInstalled, run } from '../support/run-program.ts'
import { someCredential } from '../support/store.ts'

const MONITORING = fileURLToPath(new URL('../../packaging/monitoring', import.meta.url))
const hasPrometheus = isInstalled('prometheus') && isInstalled('promtool')

interface Panel {
  readonly title: string
  readonly targets: readonly { readonly expr: string }[]
}

const readDashboard = async (): Promise<{ panels: readonly Panel[] }> =>
  JSON.parse(await readFile(join(MONITORING, 'dashboard.json'), 'utf8'))

describe.skipIf(!hasPrometheus)('the alert rules (needs prometheus)', () => {
  test('pass their unit tests', async () => {
    const env = { PATH: process.env['PATH'] ?? '' }
    const check = await run(['promtool', 'check', 'rules', 'alerts.yaml'], env, { cwd: MONITORING })
    expect(check.code, check.stderr).toBe(0)
    const tested = await run(['promtool', 'test', 'rules', 'alerts.test.yaml'], env, { cwd: MONITORING })
    expect(tested.code, tested.stdout + tested.stderr).toBe(0)
  })

  test('each have a unit test', async () => {
    const rules = await readFile(join(MONITORING, 'alerts.yaml'), 'utf8')
    const tests = await readFile(join(MONITORING, 'alerts.test.yaml'), 'utf8')
    const names = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name ?? '')
    expect(names.length).toBeGreaterThan(5)
    expect(names.filter((name) => !tests.includes(`alertname: ${name}`))).toEqual([])
  })
})

describe.skipIf(!hasPrometheus)('a Prometheus that scrapes a working server (needs prometheus)', () => {
  let app: TestApp
  let directory: string
  let prometheus: ChildProcess
  let url: string

  beforeAll(async () => {
    app = await startApp({ ownIssuer: true })
    directory = await mkdtemp(join(tmpdir(), 'mayfly-prometheus-'))
    await app.newBackend({ name: 'demo' })
    await addGone(app)
    const scraper = await app.newAgent({ scopes: ['admin:metrics:read'] })
    await writeFile(join(directory, 'token'), scraper.token)
    await writeFile(
      join(directory, 'prometheus.yaml'),
      JSON.stringify({
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        rule_files: [join(MONITORING, 'alerts.yaml')],
        scrape_configs: [
          {
            job_name: 'mayfly',
            authorization: { credentials_file: join(directory, 'token') },
            static_configs: [{ targets: [new URL(app.url).host] }],
          },
        ],
      }),
    )
    const listen = `127.0.0.1:${await freePort()}`
    url = `http://${listen}`
    const files = [
      `--config.file=${directory}/prometheus.yaml`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=${listen}`,
    ]
    prometheus = spawn('prometheus', files, { stdio: 'ignore' })
    await vi.waitFor(async () => expect((await fetch(`${url}/-/ready`)).status).toBe(200), {
      timeout: 30_000,
    })
  }, 60_000)
  afterAll(async () => {
    if (prometheus.exitCode === null) {
      const ended = once(prometheus, 'exit')
      prometheus.kill('SIGTERM')
      await ended
    }
    await app.close()
    await rm(directory, { recursive: true, force: true })
  })

  const ask = async <T>(path: string): Promise<T> =>
    ((await (await fetch(url + path)).json()) as { data: T }).data
  const query = (expr: string) =>
    ask<{ result: readonly unknown[] }>(`/api/v1/query?query=${encodeURIComponent(expr)}`)

  test('finds data for every query of the dashboard, and takes every rule', async () => {
    const agent = await app.newAgent({ scopes: ['demo:*', 'gone:*'] })
    const { panels } = await readDashboard()
    let empty = panels.flatMap(({ title, targets }) =>
      targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '30s') })),
    )
    expect(empty.length).toBeGreaterThan(15)
    const work = async () => {
      await agent.client.post('/v1/credentials/demo')
      await agent.client.post('/v1/credentials/gone')
      await app.as('ckr_nobody').get('/v1/status')
      await app.admin('POST', '/v1/admin/backends/demo/check')
      await app.sweep()
      const found = await Promise.all(empty.map(async (one) => (await query(one.expr)).result.length > 0))
      empty = empty.filter((_, place) => found[place] !== true)
      return empty
    }
    await expect.poll(work, { timeout: 60_000, interval: 500 }).toEqual([])
    const { groups } = await ask<{
      groups: readonly { rules: readonly { name: string; health: string }[] }[]
    }>('/api/v1/rules')
    const rules = groups.flatMap((group) => group.rules)
    expect(rules.length).toBeGreaterThan(5)
    expect(rules.filter(({ health }) => health === 'err')).toEqual([])
  }, 90_000)
})

/** A backend where nothing listens, with a credential that it should end. */
async function addGone({ admin, core }: TestApp): Promise<void> {
  const config = {
    host: '127.0.0.1',
    port: await freePort(),
    database: 'app',
    username: 'mayfly',
    local: true,
  }
  const body = { type: 'postgres', name: 'gone', config }
  expect((await admin('POST', '/v1/admin/backends?check=false', body)).status).toBe(200)
  const now = core.store.now()
  const row = someCredential({
    backendUid: (await core.store.backends.findByName('gone'))?.uid ?? '',
    backend: 'gone',
    state: 'revoking',
    endedAt: now - 25_000,
    createdAt: now - 60_000,
    dueAt: now,
  })
  await core.store.commit([core.store.credentials.insert(row)])
}
