import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

const run = promisify(execFile)
let app: TestApp
let directory: string

beforeAll(async () => {
  app = await startApp()
  // A socket of gpg-agent lives below it: the path has to be short.
  directory = await mkdtemp(join(tmpdir(), 'mf-'))
})
afterAll(async () => {
  for (const name of ['signer', 'verifier'])
    await run('gpgconf', ['--homedir', join(directory, name), '--kill', 'all']).catch(() => undefined)
  await app.close()
  await rm(directory, { recursive: true, force: true })
})

/** A home of its own for gpg, with this key in it. */
async function gpgHome(name: string, armored: string) {
  const home = join(directory, name)
  await run('mkdir', ['-m', '700', home])
  const file = join(directory, `${name}.asc`)
  await writeFile(file, armored, { mode: 0o600 })
  const gpg = (...args: string[]) => run('gpg', ['--homedir', home, '--batch', '--no-tty', ...args])
  await gpg('--import', file)
  return { home, gpg }
}

describe('the signing key of an agent', () => {
  test('is taken by gpg, signs a commit of git, and verifies with the key the administrator gives out', async () => {
    const agent = await app.newAgent({ name: 'committer' })
    const key = (await agent.client.get('/v1/signing-key?format=git')).body
    const signer = await gpgHome('signer', key.private_key)
    const listed = (await signer.gpg('--list-secret-keys', '--with-colons')).stdout
    expect(listed).toContain(key.key_id.toUpperCase().slice(-16))
    expect(listed).toContain('committer <committer@mayfly.test>')

    const repository = join(directory, 'repository')
    await run('git', ['init', '-q', repository])
    const git = (home: string, ...args: string[]) =>
      run('git', ['-C', repository, ...args], {
        env: { PATH: process.env['PATH'], HOME: directory, GNUPGHOME: home, GIT_CONFIG_NOSYSTEM: '1' },
      })
    for (const [name, value] of Object.entries(key.git_config as Record<string, string>))
      await git(signer.home, 'config', name, value)
    await git(signer.home, 'commit', '-q', '--allow-empty', '-S', '-m', 'signed')
    const shown = await git(signer.home, 'log', '-1', '--format=%an|%ae|%GK')
    expect(shown.stdout.trim().toUpperCase()).toContain(`|${key.key_id.toUpperCase().slice(-16)}`)
    expect(shown.stdout).toContain('committer|committer@mayfly.test|')

    const keys = (await app.admin('GET', '/v1/admin/keys')).body as { agent_id: string; public_key: string }[]
    const published = keys.find(({ agent_id }) => agent_id === agent.id)?.public_key ?? ''
    const verifier = await gpgHome('verifier', published)
    const verified = await git(verifier.home, 'verify-commit', 'HEAD')
    expect(verified.stderr).toContain('Good signature from "committer <committer@mayfly.test>"')
    expect((await verifier.gpg('--list-secret-keys', '--with-colons')).stdout).toBe('')
  })

  test('of another agent does not verify it', async () => {
    const other = await app.newAgent({ name: 'other' })
    const stranger = await gpgHome('stranger', (await other.client.get('/v1/signing-key')).body.public_key)
    const verify = run('git', ['-C', join(directory, 'repository'), 'verify-commit', 'HEAD'], {
      env: { PATH: process.env['PATH'], HOME: directory, GNUPGHOME: stranger.home },
    })
    await expect(verify).rejects.toThrow(/No public key|Can't check signature/)
  })
})
