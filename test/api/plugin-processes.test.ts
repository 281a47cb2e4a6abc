import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { placeArtefact } from '../../src/app/plugins/artefacts.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { pidsOf } from '../support/plugin.ts'
import { parrot } from '../support/plugin-artefact.ts'

const IS_ROOT = process.geteuid?.() === 0

let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp({
    argv: IS_ROOT ? { pluginUser: '65534' } : {},
    env: { MAYFLY_PLUGIN_ENV: 'HTTPS_PROXY', HTTPS_PROXY: 'http://proxy.test:3128', OTHER: 'of the server' },
  })
  const sha256 = await placeArtefact(join(app.directory, 'plugins'), await parrot())
  const artefact = { sha256, runtime: 'node', protocol: 'mayfly.plugin.v1', origin: 'file:parrot.js' }
  expect((await app.admin('POST', '/v1/admin/plugins', artefact)).status).toBe(200)
  await app.newBackend({ type: 'parrot', name: 'loro', config: { says: 'hello', password: 'never' } })
  agent = await app.newAgent({ scopes: ['loro'] })
})
afterAll(() => app?.close())

const issue = () => agent.client.post('/api/v1/credentials', { backend: 'loro', scopes: ['loro:say:hello'] })

/** The one that issues; the parrot says where its socket is. */
async function pidOfPlugin(): Promise<number> {
  const { body } = await issue()
  const [pid] = await pidsOf(/ in (\S+)$/.exec(body.token)?.[1] ?? '')
  if (pid === undefined) throw new Error('no process issued')
  return pid
}

test('sees the variables of the protocol and those that plugin_env names, and no others', async () => {
  const variables = (await readFile(`/proc/${await pidOfPlugin()}/environ`, 'utf8')).split('\0')
  expect(variables).toContain('HTTPS_PROXY=http://proxy.test:3128')
  const names = variables.map((line) => line.split('=')[0]).filter((name) => name !== '')
  expect(names.sort()).toEqual([
    ...['HTTPS_PROXY', 'MAYFLY_PLUGIN', 'PLUGIN_CLIENT_CERT', 'PLUGIN_PROTOCOL_VERSIONS'],
    ...['PLUGIN_UNIX_SOCKET_DIR', 'TMPDIR'],
  ])
})

test.runIf(IS_ROOT)('runs as plugin_user, without a group of the server, and gains no rights', async () => {
  const status = await readFile(`/proc/${await pidOfPlugin()}/status`, 'utf8')
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim().split(/\s+/)
  expect(field('Uid')).toEqual(['65534', '65534', '65534', '65534'])
  expect(field('Gid')).toEqual(['65534', '65534', '65534', '65534'])
  expect(field('Groups')).toEqual([''])
  expect([field('CapEff'), field('NoNewPrivs')]).toEqual([['0000000000000000'], ['1']])
})

test('whose process is killed is recorded with its backend, and issues again', async () => {
  const pid = await pidOfPlugin()
  process.kill(pid, 'SIGKILL')
  const entry = await eventually(async () => {
    const [found] = (await app.admin('GET', '/v1/admin/audit?action=plugin.failed')).body
    expect(found).toBeDefined()
    return found
  })
  expect(entry).toMatchObject({
    ...{ actor: 'system', outcome: 'failed', backend: 'loro' },
    details: {
      plugin: 'parrot',
      reason: expect.stringMatching(/^Its process ended \(.*signal SIGKILL\)\.$/),
    },
  })
  expect(await pidOfPlugin()).not.toBe(pid)
})
