import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createRewrap } from '../../src/jobs/rewrap.ts'
import { createLogger } from '../../src/log/log.ts'
import { startApp } from '../support/app.ts'
import { newMasterKey } from '../support/master-key.ts'

test('no file of the data directory, no line of the log and no audit entry holds a secret', async () => {
  const app = await startApp()
  try {
    const { privateKey } = (await import('node:crypto')).generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const jwk = privateKey.export({ format: 'jwk' })
    const backend = await app.newBackend({ config: { audience: 'x', signing_key: JSON.stringify(jwk) } })
    const agent = await app.newAgent({ scopes: [backend] })
    const access = await app.accessToken(agent)
    const issued = (await agent.client.post(`/v1/credentials/${backend}`, {}, { 'idempotency-key': 'once' }))
      .body
    const pgp = (await agent.client.get('/v1/signing-key')).body.private_key as string
    const secrets = [
      agent.token,
      agent.oidc.client_secret,
      String(jwk.d),
      issued.token,
      access,
      pgp.split('\n')[4] ?? '',
      'PRIVATE KEY',
    ]
    const audit = (await app.admin('GET', '/v1/admin/audit?limit=1000')).text
    for (const name of await readdir(app.directory)) {
      if (name === 'master.key' || name === 'admin.sock') continue
      const text = (await readFile(join(app.directory, name))).toString('latin1')
      for (const secret of secrets) expect(text.includes(secret), `${name} holds a secret`).toBe(false)
    }
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(8)
      expect(app.logged()).not.toContain(secret)
      expect(audit).not.toContain(secret)
    }
  } finally {
    await app.close()
  }
})

test('without the master key, or with another, the server does not start', async () => {
  const app = await startApp()
  const { directory } = app
  const key = await readFile(join(directory, 'master.key'), 'utf8')
  await app.app.close()
  const build = async () => {
    const { config } = await loadConfig({
      argv: { dataDir: directory },
      env: {},
      readFile: (path) => readFile(path),
    })
    return buildApp(config, createLogger({ level: 'silent', format: 'json' }))
  }
  try {
    await rm(join(directory, 'master.key'), { force: true })
    await expect(build()).rejects.toThrow(/master key/)
    await writeFile(join(directory, 'master.key'), newMasterKey(), { mode: 0o400 })
    await expect(build()).rejects.toThrow('this store was sealed with another master key')
    await rm(join(directory, 'master.key'), { force: true })
    await writeFile(join(directory, 'master.key'), key, { mode: 0o400 })
    await (await build()).close()
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('does not start without a master key that still seals a value', async () => {
  const app = await startApp()
  const file = join(app.directory, 'master.key')
  const agent = await app.newAgent()
  await app.app.close()
  const start = async (text: string) => {
    await rm(file, { force: true })
    await writeFile(file, text, { mode: 0o600 })
    const { config } = await loadConfig({
      argv: { dataDir: app.directory },
      env: {},
      readFile: (path) => readFile(path),
    })
    return buildApp(config, createLogger({ level: 'silent', format: 'json' }))
  }
  try {
    const first = await readFile(file, 'utf8')
    const second = newMasterKey(2)
    await (await start(first + second)).close()
    await expect(start(second)).rejects.toThrow(/still sealed under/)
    const both = await start(first + second)
    const rewrap = createRewrap(both.core)
    while (await rewrap(new AbortController().signal));
    await both.close()
    const last = await start(second)
    const key = await last.core.store.agents.signingKeyOf(agent.id)
    const sealed = key?.sealedPrivateKey ?? ''
    expect(last.core.sealer.open('signing_keys', agent.id, 'private_key', sealed)).toContain('PRIVATE KEY')
    await last.close()
  } finally {
    await rm(app.directory, { recursive: true, force: true })
  }
})
