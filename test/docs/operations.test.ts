import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newAuthority } from '../cli/certificates.ts'
import { newCredentialId } from '../contract/open-kind.ts'
import { startOwnPostgres, startPostgres } from '../support/postgres.ts'
import { createLogin, openUpstreamDatabase } from '../support/upstream-database.ts'
import { type InstalledServer, installServer } from './installed-server.ts'

let server: InstalledServer
beforeAll(async () => {
  server = await installServer()
})
afterAll(() => server.close())

const listAgents = () => server.mayfly('agent', 'ls', '--data-dir', join(server.home, 'var'))

// In this order: each page finds the server as the one before has left it.

test('troubleshooting.md works as shown', async () => {
  await server.runPage('docs/operations/troubleshooting.md')
})

test('backup.md works as shown', async () => {
  await server.runPage('docs/operations/backup.md')
  expect(await listAgents()).toContain('first')
  expect(await readdir(join(server.home, 'var.old'))).toContain('mayfly.db')
})

test('master-key.md works as shown', async () => {
  await server.runPage('docs/operations/master-key.md')
  expect(await listAgents()).toContain('first')
  expect(await readFile(join(server.etc, 'master.key'), 'utf8')).toMatch(/^2:[0-9a-f]{64}\n$/)
})

test('root-rotation-and-reconcile.md works as shown', async () => {
  // Its own, because it ends all accounts that are not ours.
  const upstream = await openUpstreamDatabase(await startOwnPostgres())
  const login = await createLogin(upstream)
  const left = `mf_${newCredentialId().slice('cred_'.length)}`
  const until = new Date(Date.now() + 3_600_000).toISOString()
  await upstream.root.query(`CREATE ROLE ${left} LOGIN VALID UNTIL '${until}'`)
  const at = ['--data-dir', join(server.home, 'var')]
  const file = join(server.home, 'orders.json')
  await writeFile(file, JSON.stringify(upstream.config(login)))
  try {
    await server.mayfly('backend', 'add', 'postgres', 'orders', '--config', file, ...at)
    await server.runPage('docs/operations/root-rotation-and-reconcile.md')
    const { rows } = await upstream.root.query("SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%'")
    expect(rows).toEqual([])
    await server.mayfly('backend', 'rm', 'orders', '--yes', ...at)
  } finally {
    await upstream.close()
  }
})

test('reload.md works as shown', async () => {
  await server.runPage('docs/operations/reload.md')
})

test('upgrade.md works as shown', async () => {
  await server.runPage('docs/operations/upgrade.md')
})

test('move.md works as shown', async () => {
  const moved = await installServer()
  const at = ['--data-dir', join(moved.home, 'var')]
  const address = `127.0.0.1:${moved.port}`
  const enroll = (...more: string[]) =>
    moved.mayfly('enroll', '--server', `http://${address}`, '--name', 'moves', ...more)
  try {
    const { enrollment_id } = JSON.parse(await enroll('--no-wait', '--json'))
    await moved.mayfly('approve', enrollment_id, '--yes', ...at)
    await enroll()
    await moved.runPage('docs/operations/move.md')
    const { profiles } = JSON.parse(await readFile(join(moved.home, '.config/mayfly/config.json'), 'utf8'))
    expect(profiles.default).toMatchObject({
      server: `http://localhost:${moved.port}`,
      issuer: `https://localhost:${moved.port}`,
    })
  } finally {
    await moved.close()
  }
})

test('the pages on PostgreSQL and on removing work as shown', async () => {
  const postgres = await startPostgres()
  const database = await postgres.createDatabase()
  const at = ['--data-dir', join(server.home, 'var')]
  try {
    await server.runPage('docs/operations/postgresql.md', { DATABASE_URL: database.url })
    await server.mayfly('backend', 'add', 'jwt', 'reports', '--audience', 'reports', ...at)
    await server.runPage('docs/operations/remove.md')
    expect(await readdir(server.home)).not.toContain('var')
  } finally {
    await database.drop()
    await postgres.stop()
  }
})

test('certificate.md works as shown', async () => {
  const flags = ['--tls-cert-file', 'etc/cert.pem', '--tls-key-file', 'etc/key.pem']
  let caFile = ''
  const tls = await installServer(
    (port) => ['--issuer', `https://localhost:${port}`, ...flags],
    async (etc) => {
      const authority = await newAuthority(etc)
      caFile = authority.caFile
      const [old, fresh] = [
        await authority.issue({ name: 'old', dns: ['localhost'], daysLeft: 5 }),
        await authority.issue({ name: 'new', dns: ['localhost'], daysLeft: 25 }),
      ]
      await copyFile(old.certFile, join(etc, 'cert.pem'))
      await copyFile(old.keyFile, join(etc, 'key.pem'))
      await copyFile(fresh.certFile, join(etc, '../new-cert.pem'))
      await copyFile(fresh.keyFile, join(etc, '../new-key.pem'))
    },
  )
  try {
    await tls.runPage('docs/operations/certificate.md', { MAYFLY_CA_FILE: caFile })
  } finally {
    await tls.close()
  }
})
