import { type ExecFileOptions, execFile, spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Problem } from '../domain/problems.ts'
import { generateAgentPgpKey } from './pgp.ts'

const now = Date.now()

test('makes an OpenPGP v4 key with its long id and fingerprint', async () => {
  const key = await generateAgentPgpKey({ name: 'ci', email: 'ci@agents.example.com', now })
  expect(key.keyId).toMatch(/^[0-9A-F]{16}$/)
  expect(key.fingerprint).toMatch(/^[0-9A-F]{40}$/)
  expect(key.fingerprint.endsWith(key.keyId)).toBe(true)
  expect(key.publicKey).toMatch(/^-----BEGIN PGP PUBLIC KEY BLOCK-----\n/)
  expect(key.privateKey).toMatch(/^-----BEGIN PGP PRIVATE KEY BLOCK-----\n/)
  const { readKey } = await import('openpgp')
  const read = await readKey({ armoredKey: key.publicKey })
  expect(read.isPrivate()).toBe(false)
  expect(read.keyPacket.version).toBe(4)
  expect(read.getSubkeys()).toHaveLength(0)
  expect(read.getUserIDs()).toEqual(['ci <ci@agents.example.com>'])
})

test.each([
  ['a name with an angle bracket', 'ci <root@example.com>', 'ci@example.com'],
  ['a name with a newline', 'ci\nx', 'ci@example.com'],
  ['an empty name', '', 'ci@example.com'],
  ['a reserved name', 'admin', 'ci@example.com'],
  ['an e-mail with a bracket', 'ci', 'ci@example.com> <root@example.com'],
  ['an e-mail with a newline', 'ci', 'ci@example.com\n'],
  ['an e-mail with a space', 'ci', 'c i@example.com'],
  ['an e-mail with two @', 'ci', 'ci@a@example.com'],
  ['an e-mail without a domain', 'ci', 'ci@'],
  ['an e-mail without a name', 'ci', '@example.com'],
  ['an e-mail with a non-ASCII letter', 'ci', 'cí@example.com'],
  ['an e-mail with a NUL', 'ci', 'ci\0@example.com'],
  ['an e-mail with an empty label', 'ci', 'ci@example..com'],
  ['an e-mail with a label that starts with -', 'ci', 'ci@-example.com'],
  ['a long e-mail', 'ci', `ci@${'a.'.repeat(130)}com`],
])('refuses %s', async (_name, name, email) => {
  await expect(generateAgentPgpKey({ name, email, now })).rejects.toThrow(Problem)
})

const hasGpg = spawnSync('gpg', ['--version']).status === 0 && spawnSync('git', ['--version']).status === 0

describe.skipIf(!hasGpg)('with the real gpg and git', () => {
  const run = promisify(execFile)
  let root = ''
  let options: ExecFileOptions = {}
  const gpg = async (...args: string[]) => {
    const { stdout, stderr } = await run('gpg', ['--batch', '--no-tty', ...args], options)
    return `${stdout}${stderr}`
  }
  const git = async (...args: string[]) => {
    const { stdout, stderr } = await run('git', ['-C', join(root, 'repo'), ...args], options)
    return `${stdout}${stderr}`
  }

  beforeAll(async () => {
    // A short path: gpg-agent's socket lies in it, and a socket's path has at most 107 bytes.
    root = await mkdtemp(join(tmpdir(), 'mfg-'))
    await chmod(root, 0o700)
    await mkdir(join(root, 'gnupg'), { mode: 0o700 })
    await mkdir(join(root, 'repo'))
    const env = {
      PATH: process.env['PATH'],
      HOME: root,
      GNUPGHOME: join(root, 'gnupg'),
      GIT_CONFIG_NOSYSTEM: '1',
      LC_ALL: 'C',
    }
    options = { env }
  })

  afterAll(async () => {
    await run('gpgconf', ['--kill', 'all'], options)
    await rm(root, { recursive: true, force: true })
  })

  test('both halves are imported, and a commit is signed and verified', async () => {
    const name = `ci.${'n'.repeat(100)}-1.`
    const email = `${name}@localhost`
    const key = await generateAgentPgpKey({ name, email, now: Date.now() })
    await writeFile(join(root, 'public.asc'), key.publicKey)
    await writeFile(join(root, 'private.asc'), key.privateKey, { mode: 0o600 })
    expect(await gpg('--import', join(root, 'public.asc'))).toMatch(/imported: 1/)
    const listed = await gpg('--with-colons', '--list-keys', key.keyId)
    expect(listed).toMatch(new RegExp(`^pub:[^:]*:255:22:${key.keyId}:.*:[a-z]*S[A-Z]*:.*ed25519`, 'm'))
    expect(listed).toContain(`fpr:::::::::${key.fingerprint}:`)
    expect(listed).toContain(`${name} <${email}>`)
    expect(await gpg('--import', join(root, 'private.asc'))).toMatch(/secret keys imported: 1/)

    await git('init', '-q')
    const identity = [
      '-c',
      `user.name=${name}`,
      '-c',
      `user.email=${email}`,
      '-c',
      `user.signingkey=${key.keyId}`,
    ]
    await git(...identity, 'commit', '-q', '-S', '--allow-empty', '-m', 'signed')
    const verified = await git('verify-commit', '--raw', 'HEAD')
    expect(verified).toContain(`[GNUPG:] GOODSIG ${key.keyId} ${name} <${email}>`)
    expect(verified).toContain(`[GNUPG:] VALIDSIG ${key.fingerprint}`)

    await git('-c', 'user.name=x', '-c', 'user.email=x@x', 'commit', '-q', '--allow-empty', '-m', 'unsigned')
    await expect(git('verify-commit', 'HEAD')).rejects.toThrow()
  })
})
