import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FIELDS } from '../../src/config/schema.ts'
import { startApp, type TestApp } from '../support/app.ts'

const SECRET = `whsec_${Buffer.alloc(24, 'k').toString('base64')}`
let folder: string
let file: string
let app: TestApp

const yaml = (level: string) => `log_level: ${level}
notify:
  - name: ops
    webhook:
      url: https://hooks.example.com/services/T0P/s3cr3t?key=s3cr3t
      secret_file: ${folder}/secret
`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-settings-'))
  file = join(folder, 'mayfly.yaml')
  await writeFile(join(folder, 'secret'), SECRET, { mode: 0o600 })
  await writeFile(file, yaml('info'))
  app = await startApp({ dialect: 'postgres', argv: { config: file, upstreamTimeout: '3s' } })
})
afterAll(async () => {
  await app.close()
  await rm(folder, { recursive: true, force: true })
})

interface Shown {
  readonly name: string
  readonly value: string
}
const read = async () => {
  const { status, body, text } = await app.local.get('/v1/admin/settings')
  expect(status).toBe(200)
  const byName = Object.fromEntries(body.settings.map((one: Shown) => [one.name, one]))
  return { byName, settings: body.settings as Shown[], text }
}

describe('GET /v1/admin/settings', () => {
  test('shows every setting with its origin, and whether a reload takes another value', async () => {
    const { byName, settings } = await read()
    expect(settings.map(({ name }) => name)).toEqual(FIELDS.map(({ path }) => path))
    expect(byName['log_level']).toEqual({
      name: 'log_level',
      value: 'info',
      origin: `${file}:1:12`,
      reload: true,
      description: expect.stringMatching(/log/i),
    })
    expect(byName['upstream_timeout']).toMatchObject({
      value: '3s',
      origin: 'flag --upstream-timeout',
      reload: false,
    })
    expect(byName['issue_by_get']).toMatchObject({ origin: 'default' })
  })

  test('shows nothing secret: not a URL with a password, nor the path of a webhook', async () => {
    const { byName, text } = await read()
    expect(byName['database_url']).toMatchObject({
      value: '[redacted]',
      origin: 'environment MAYFLY_DATABASE_URL',
    })
    expect(JSON.parse(byName['notify'].value)[0].webhook.url).toBe('https://hooks.example.com/[redacted]')
    for (const secret of ['s3cr3t', SECRET, 'whsec_', app.databaseUrl ?? ''])
      expect(text).not.toContain(secret)
  })

  test('shows what is in force: the file counts once it is reloaded', async () => {
    await writeFile(file, yaml('warn'))
    expect((await read()).byName['log_level'].value).toBe('info')
    expect((await app.local.post('/v1/admin/reload')).body.faults).toEqual([])
    expect((await read()).byName['log_level'].value).toBe('warn')
  })

  test('needs its scope, and is recorded where the local host reads it', async () => {
    const reader = await app.newAgent({ scopes: ['admin:server:read'] })
    expect((await reader.client.get('/v1/admin/settings')).status).toBe(200)
    const other = await app.newAgent({ scopes: ['admin:server:write'] })
    expect((await other.client.get('/v1/admin/settings')).status).toBe(403)
    const { body } = await app.local.get('/v1/admin/audit?action=admin.local_access')
    expect(JSON.stringify(body)).toContain('/v1/admin/settings')
  })
})

describe('GET /v1/admin/keys/issuer', () => {
  test('shows which key signs, and until when the one before verifies', async () => {
    const list = async () => (await app.local.get('/v1/admin/keys/issuer')).body
    const [before] = await list()
    expect(await list()).toEqual([
      { key_id: expect.any(String), algorithm: 'RS256', created_at: expect.any(String), valid_until: null },
    ])
    const { body: rotated } = await app.local.post('/v1/admin/keys/rotate', { grace: '1h' })
    expect(await list()).toEqual([
      { key_id: rotated.key_id, algorithm: 'RS256', created_at: expect.any(String), valid_until: null },
      { ...before, valid_until: rotated.previous_valid_until },
    ])
    const { body: jwks } = await app.local.get('/.well-known/jwks.json')
    expect(jwks.keys.map((key: { kid: string }) => key.kid).sort()).toEqual(
      [before.key_id, rotated.key_id].sort(),
    )
  })
})
