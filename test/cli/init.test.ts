import { chmod, chown, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { newMasterKey } from '../support/master-key.ts'
import { newHome, runCli } from './support.ts'

let home: string
let env: Record<string, string>
beforeEach(async () => {
  ;({ home, env } = await newHome())
})

const at = () => ['--config', join(home, 'etc/mayfly.yaml'), '--data-dir', join(home, 'data')]
const init = (...more: string[]) => runCli(['init', ...at(), ...more], { env })
const settings = async () => parse(await readFile(join(home, 'etc/mayfly.yaml'), 'utf8'))
const modeOf = async (name: string) => (await stat(join(home, name))).mode & 0o777

describe('init --yes', () => {
  test('writes a configuration, a master key and the data directory, and prints three commands', async () => {
    const end = await init('--yes')
    expect(end.code).toBe(0)
    expect(await settings()).toEqual({
      listen: '127.0.0.1:8620',
      issuer: 'http://127.0.0.1:8620',
      data_dir: join(home, 'data'),
      master_key_file: join(home, 'etc/master.key'),
    })
    expect([await modeOf('etc/mayfly.yaml'), await modeOf('etc/master.key'), await modeOf('data')]).toEqual([
      0o644, 0o400, 0o700,
    ])
    expect(end.stderr).toBe(
      [
        `Wrote ${home}/etc/master.key.`,
        `Wrote ${home}/etc/mayfly.yaml.`,
        `Keep a copy of ${home}/etc/master.key apart from the backups: without it, they cannot be read.`,
        'Next:',
        '',
      ].join('\n'),
    )
    const [start, admin, backend, ...more] = end.stdout.trimEnd().split('\n')
    expect(start).toMatch(/^systemctl enable --now mayfly$|mayfly server --config .*\/etc\/mayfly\.yaml$/)
    expect(admin).toMatch(
      /^mayfly agent create operator --scope 'admin:\*' --scope '\*' --data-dir .*\/data$/,
    )
    expect(backend).toMatch(/^mayfly backend add postgres --data-dir .*\/data$/)
    expect(more).toEqual([])
  })

  test('takes each option', async () => {
    await writeFile(join(home, 'url'), 'postgres://mayfly@db.example.com/mayfly\n', { mode: 0o600 })
    await mkdir(join(home, 'keys'))
    const end = await init(
      '--yes',
      ...['--issuer', 'https://mayfly.example.com', '--listen', '0.0.0.0:8443'],
      ...['--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem'],
      ...['--database-url-file', 'url', '--master-key-file', 'keys/master', '--admin', 'boss'],
    )
    expect(end.code).toBe(0)
    expect(await settings()).toEqual({
      listen: '0.0.0.0:8443',
      issuer: 'https://mayfly.example.com',
      tls_cert_file: join(home, 'cert.pem'),
      tls_key_file: join(home, 'key.pem'),
      data_dir: join(home, 'data'),
      database_url_file: join(home, 'url'),
      master_key_file: join(home, 'keys/master'),
    })
    expect(end.stdout).toContain('mayfly agent create boss ')
    expect(end.stderr).toMatch(/cert\.pem: no such file or directory\. Put it there before/)
  })

  test('a public address alone is that of a proxy on this machine', async () => {
    expect((await init('--yes', '--issuer', 'https://mayfly.example.com')).code).toBe(0)
    expect(await settings()).toMatchObject({ listen: '127.0.0.1:8620', trusted_proxies: ['127.0.0.1/32'] })
  })

  test('keeps the comments of a file without settings', async () => {
    await mkdir(join(home, 'etc'))
    await writeFile(join(home, 'etc/mayfly.yaml'), '# All of it is a comment.\n#listen: x\n')
    expect((await init('--yes')).code).toBe(0)
    expect(await readFile(join(home, 'etc/mayfly.yaml'), 'utf8')).toMatch(
      /^# All of it is a comment\.\n#listen: x\n\n# Made by .*\nlisten: 127/,
    )
  })

  test('fills in the file of the package, and keeps its mode', async () => {
    await mkdir(join(home, 'etc'))
    const text = `# Where\nlisten: 127.0.0.1:8620\n#issuer: https://x\ndata_dir: ${join(home, 'data')}\n# The end\n`
    await writeFile(join(home, 'etc/mayfly.yaml'), text, { mode: 0o640 })
    const end = await runCli(['init', '--config', 'etc/mayfly.yaml', '--yes'], { env })
    expect([end.code, await modeOf('etc/mayfly.yaml')]).toEqual([0, 0o640])
    expect((await readFile(join(home, 'etc/mayfly.yaml'), 'utf8')).startsWith(text)).toBe(true)
    expect(await settings()).toEqual({
      listen: '127.0.0.1:8620',
      data_dir: join(home, 'data'),
      issuer: 'http://127.0.0.1:8620',
      master_key_file: join(home, 'etc/master.key'),
    })
  })

  test('says which line of the file of the package keeps a public server to this machine', async () => {
    await mkdir(join(home, 'etc'))
    await writeFile(join(home, 'etc/mayfly.yaml'), 'listen: 127.0.0.1:8620\n')
    const end = await init(
      ...['--yes', '--issuer', 'https://mayfly.example.com:8443'],
      ...['--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem'],
    )
    expect(end).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /sets listen to 127\.0\.0\.1:8620, which no other machine reaches\. Change the line to 0\.0\.0\.0:8443/,
      ),
    })
  })

  test.skipIf(process.getuid?.() !== 0)(
    'says that the account of the server cannot read the key',
    async () => {
      await mkdir(join(home, 'data'))
      for (const name of ['cert.pem', 'key.pem']) await writeFile(join(home, name), '', { mode: 0o644 })
      await chmod(join(home, 'key.pem'), 0o600)
      for (const one of [home, join(home, 'data')]) await chmod(one, 0o755)
      await chown(join(home, 'data'), 65_534, 65_534)
      const end = await init(
        ...['--yes', '--issuer', 'https://mayfly.example.com'],
        ...['--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem'],
      )
      expect(end.code).toBe(0)
      expect(end.stderr).toMatch(
        /key\.pem: the user nobody, which runs the server, cannot read it\. Let it: chgrp 65534 /,
      )
      expect(end.stderr).not.toContain('cert.pem')
    },
  )

  test('after a first start, keeps the master key that the server made', async () => {
    await mkdir(join(home, 'data'), { mode: 0o700 })
    await writeFile(join(home, 'data/mayfly.db'), '')
    await writeFile(join(home, 'data/master.key'), newMasterKey(), { mode: 0o400 })
    expect((await init('--yes')).code).toBe(0)
    expect(await settings()).toMatchObject({ master_key_file: join(home, 'data/master.key') })
  })

  test('keeps a master key that is there', async () => {
    await mkdir(join(home, 'etc'))
    const key = newMasterKey()
    await writeFile(join(home, 'etc/master.key'), key, { mode: 0o400 })
    const end = await init('--yes')
    expect([end.code, await readFile(join(home, 'etc/master.key'), 'utf8')]).toEqual([0, key])
    expect(end.stderr).not.toContain(`Wrote ${home}/etc/master.key`)
  })
})

describe('init asks', () => {
  const typed = (...lines: string[]) =>
    runCli(['init', ...at()], { env, tty: true, stdin: `${lines.join('\n')}\n` })

  test('for what it needs, again after a wrong answer, and takes defaults', async () => {
    const end = await typed(
      'mayfly.example.com',
      'https://mayfly.example.com',
      'mayfly',
      'c.pem',
      'k.pem',
      '',
      'sqlite',
      '',
      'system',
      'boss',
    )
    expect(end.code).toBe(0)
    expect(end.stderr).toContain(
      'Public address of the server: is not a URL such as https://mayfly.example.com.',
    )
    expect(end.stderr).toContain('Name of the first administrator: This name is reserved.')
    expect(await settings()).toEqual({
      listen: '0.0.0.0:443',
      issuer: 'https://mayfly.example.com',
      tls_cert_file: join(home, 'c.pem'),
      tls_key_file: join(home, 'k.pem'),
      data_dir: join(home, 'data'),
      master_key_file: join(home, 'etc/master.key'),
    })
    expect(end.stdout).toContain('agent create boss')
  })

  test('for the URL of a PostgreSQL database without showing it, and keeps it private', async () => {
    const url = 'postgres://mayfly:hunter2hunter2@db.example.com/mayfly'
    const end = await typed('', '', 'postgresql', '', 'db.example.com', url, '', '')
    expect(end.code).toBe(0)
    expect(end.stderr + end.stdout).not.toContain('hunter2')
    expect(await readFile(join(home, 'etc/database.url'), 'utf8')).toBe(`${url}\n`)
    expect(await modeOf('etc/database.url')).toBe(0o400)
    expect(await settings()).toMatchObject({ database_url_file: join(home, 'etc/database.url') })
  })

  test('only at a terminal', async () => {
    expect(await init()).toMatchObject({ code: 2, stderr: expect.stringMatching(/no terminal.*--yes/) })
    expect(await readdir(home)).toEqual([])
  })
})

describe('init changes nothing', () => {
  test('where there are settings', async () => {
    expect((await init('--yes')).code).toBe(0)
    const before = await readFile(join(home, 'etc/mayfly.yaml'))
    expect(await init('--yes', '--listen', '127.0.0.1:1')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has settings already, and is unchanged\. Edit it/),
    })
    expect(await readFile(join(home, 'etc/mayfly.yaml'))).toEqual(before)
  })

  test('where another value is set', async () => {
    await mkdir(join(home, 'etc'))
    await writeFile(join(home, 'etc/mayfly.yaml'), 'listen: 127.0.0.1:8620\n')
    expect(await init('--yes', '--listen', '127.0.0.1:1')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/sets listen to 127\.0\.0\.1:8620, and is unchanged/),
    })
    expect(await readdir(join(home, 'etc'))).toEqual(['mayfly.yaml'])
  })

  test.each([
    ['--listen', '8620', /Address to listen on: "8620" is not host:port/],
    ['--issuer', 'http://mayfly.example.com', /must start with https/],
    ['--trusted-proxy', '0.0.0.0/0', /would trust every client/],
    ['--tls-cert-file', 'c.pem', /Its private key file \(PEM\)|tls_key_file|no terminal/],
    ['--admin', 'a b', /first administrator: /],
    ['--database-url-file', 'none', /none.* does not exist/],
  ])('for a wrong %s', async (flag, value, message) => {
    const end = await init('--yes', flag, value)
    expect([end.code, end.stderr]).toEqual([2, expect.stringMatching(message)])
    expect(await readdir(home)).toEqual([])
  })

  test('beside a store whose master key is elsewhere', async () => {
    await mkdir(join(home, 'data'))
    await writeFile(join(home, 'data/mayfly.db'), '')
    const end = await init('--yes')
    expect([end.code, end.stderr]).toEqual([2, expect.stringMatching(/the master key is missing/)])
    expect(await readdir(join(home, 'etc'))).toEqual([])
  })
})
