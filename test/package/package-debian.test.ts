import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import {
  appendFile,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { parrot } from '../support/plugin-artefact.ts'
import { type BuiltServer, consoleStatus, docsStatus, startLine } from './built-server.ts'
import { type FreshRoot, makeFreshRoot } from './fresh-root.ts'

const SCRIPT = fileURLToPath(new URL('../../scripts/package.ts', import.meta.url))
const PACKAGING = fileURLToPath(new URL('../../packaging/', import.meta.url))
const OLD = '0.1.9'
const NEW = '0.2.9'
const MINUTES = 60_000

/** In the order in which an operator does it; each step continues where the one before it ended. */
describe('the Debian package in a fresh root without Node.js', { timeout: 10 * MINUTES }, () => {
  let folder: string
  let root: FreshRoot
  let port: number
  let server: BuiltServer
  let token: string

  const inRoot = (path: string) => join(root.directory, path)
  /** With no terminal, and nobody to answer. */
  const install = (version: string) =>
    root.run(['apt-get', 'install', '-y', `/mayfly_${version}_amd64.deb`], FRONTEND)
  const admin = async (...argv: string[]) => {
    const end = await root.run(['mayfly', ...argv, '--data-dir', '/var/lib/mayfly', '--json'])
    expect(end).toMatchObject({ code: 0 })
    return end.stdout
  }
  const get = () =>
    root.run(['mayfly', 'get', 'demo'], {
      user: 'nobody',
      env: { MAYFLY_TOKEN: token, MAYFLY_SERVER: `http://127.0.0.1:${port}`, HOME: '/nonexistent' },
    })
  /** As systemd starts it. */
  const start = async () => {
    const unit = await readFile(inRoot('usr/lib/systemd/system/mayfly.service'), 'utf8')
    const line = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? ''
    const user = /^User=(.*)$/m.exec(unit)?.[1] ?? ''
    server = await startLine(root.words(line.split(' '), user), { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' })
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-debian-'))
    for (const version of [OLD, NEW])
      execFileSync(process.execPath, [SCRIPT, '--version', version, '--out', folder], { stdio: 'inherit' })
    root = makeFreshRoot(join(folder, 'root'))
    for (const version of [OLD, NEW])
      await copyFile(join(folder, `mayfly_${version}_amd64.deb`), inRoot(`mayfly_${version}_amd64.deb`))
    port = await freePort()
  }, 10 * MINUTES)
  afterAll(async () => {
    await server?.stop()
    root?.remove()
    await rm(folder, { recursive: true, force: true })
  })

  test('it installs where there is no Node.js', async () => {
    expect(await root.run(['sh', '-c', 'command -v node'])).toMatchObject({ stdout: '' })
    expect(await install(OLD)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('systemctl enable --now mayfly'),
    })
    expect(await root.run(['mayfly', '--version'])).toEqual({ code: 0, stdout: `${OLD}\n`, stderr: '' })
  })

  test('it brings the units, and the pages that they name', async () => {
    for (const unit of ['mayfly.service', 'mayfly-proxy@.service']) {
      const text = await readFile(inRoot(`usr/lib/systemd/system/${unit}`), 'utf8')
      expect(text).toBe(await readFile(join(PACKAGING, unit), 'utf8'))
      const [, page] = /^Documentation=man:(.*)\(1\)$/m.exec(text) ?? []
      expect(await readdir(inRoot('usr/share/man/man1'))).toContain(`${page}.1.gz`)
    }
  })

  test('it installs the manual, completions, licences and the list of what is inside', async () => {
    const share = inRoot('usr/share')
    for (const file of ['mayfly.1.gz', 'mayfly-get.1.gz', 'mayfly-agent-create.1.gz'])
      expect(await readdir(join(share, 'man/man1'))).toContain(file)
    for (const file of [
      'bash-completion/completions/mayfly',
      'zsh/site-functions/_mayfly',
      'fish/vendor_completions.d/mayfly.fish',
    ])
      expect(await readFile(join(share, file), 'utf8')).toContain('mayfly __complete')
    const licences = await readFile(join(share, 'doc/mayfly/THIRD-PARTY-LICENSES'), 'utf8')
    for (const name of ['fastify', 'react-dom', 'SIL OPEN FONT LICENSE']) expect(licences).toContain(name)
    const bill = JSON.parse(await readFile(join(share, 'doc/mayfly/sbom.cdx.json'), 'utf8'))
    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { name: 'mayfly', version: OLD } },
    })
    const names = bill.components.map(({ name }: { name: string }) => name)
    for (const name of ['node', 'fastify', 'openpgp', 'react-dom']) expect(names).toContain(name)
    expect(names).not.toContain('vitest')
    expect(await readFile(join(share, 'doc/mayfly/docs/operations/install.md'), 'utf8')).toContain(
      '# Install',
    )
  })

  test('only the user of the server reads its configuration and its data', async () => {
    const { stdout } = await root.run([
      'stat',
      '-c',
      '%U:%G %a %n',
      '/etc/mayfly',
      '/etc/mayfly/mayfly.yaml',
      '/var/lib/mayfly',
    ])
    expect(stdout.trim().split('\n')).toEqual([
      'root:mayfly 750 /etc/mayfly',
      'root:mayfly 640 /etc/mayfly/mayfly.yaml',
      'mayfly:mayfly 700 /var/lib/mayfly',
    ])
  })

  test('the server starts as its own user and issues a first credential', async () => {
    const file = inRoot('etc/mayfly/mayfly.yaml')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('listen: 127.0.0.1:8620', `listen: 127.0.0.1:${port}`))
    await start()
    await admin('backend', 'add', 'jwt', 'demo', '--audience', 'demo')
    token = JSON.parse(await admin('agent', 'create', 'ci', '--scope', 'demo')).token
    expect(await get()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/), stderr: '' })
  })

  test('the executable has the documentation, keys and signing keys of the server', async () => {
    expect(new Set(await docsStatus(server))).toEqual(new Set([200]))
    const console = await consoleStatus(server)
    expect(console.length).toBeGreaterThan(2)
    expect(new Set(console)).toEqual(new Set([200]))
    expect(await (await fetch(`${server.address}/.well-known/jwks.json`)).json()).toMatchObject({
      keys: [{ kty: 'RSA', x5c: [expect.any(String)] }],
    })
    const env = { MAYFLY_TOKEN: token, MAYFLY_SERVER: `http://127.0.0.1:${port}` }
    expect(await root.run(['mayfly', 'signing-key'], { env })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('PGP'),
    })
  })

  test('a plugin for Node.js runs in the executable, under its permission model', async () => {
    await writeFile(inRoot('parrot.mjs'), await parrot())
    await writeFile(inRoot('password'), 'never', { mode: 0o600 })
    const configured = ['--config', '/etc/mayfly/mayfly.yaml', '--json']
    const added = await root.run(['mayfly', 'plugin', 'add', '/parrot.mjs', ...configured])
    expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining('"parrot"') })
    await admin('backend', 'add', 'parrot', 'loro', '--says', 'hello', '--password-file', '/password')
    const its = JSON.parse(await admin('agent', 'create', 'talker', '--scope', 'loro')).token
    const env = { MAYFLY_TOKEN: its, MAYFLY_SERVER: `http://127.0.0.1:${port}` }
    const said = await root.run(['mayfly', 'get', 'loro', '--scope', 'say:hello'], { env })
    expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(/^hello of 1\.0\.0 in \//) })
    const place = / in (\S+)/.exec(said.stdout)?.[1]
    const environments = (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''))
    const own = (await Promise.all(environments)).filter((text) =>
      text.includes(`PLUGIN_UNIX_SOCKET_DIR=${place}\0`),
    )
    expect(own.some((text) => text.includes('NODE_OPTIONS="--permission"'))).toBe(true)
    const by = await root.run(['mayfly', '__plugin', '/parrot.mjs'])
    expect(by).toMatchObject({ code: 1, stderr: expect.stringContaining('Only a server') })
  })

  test('docker finds its helper, which is the same executable', async () => {
    const env = { MAYFLY_TOKEN: token, MAYFLY_SERVER: `http://127.0.0.1:${port}` }
    expect(await root.run(['docker-credential-mayfly', 'list'], { env })).toEqual({
      code: 0,
      stdout: '{}\n',
      stderr: '',
    })
  })

  test('a drop-in adds to the configuration', async () => {
    await mkdir(inRoot('etc/mayfly/conf.d'))
    await writeFile(inRoot('etc/mayfly/conf.d/10-log.yaml'), 'log_level: warn\n')
    const reload = ['mayfly', 'server', 'reload', '--config', '/etc/mayfly/mayfly.yaml']
    expect(await root.run(reload)).toMatchObject({ code: 0, stdout: 'Reloaded. Changed: log_level.\n' })
    await rm(inRoot('etc/mayfly/conf.d/10-log.yaml'))
    expect(await root.run(reload)).toMatchObject({ code: 0 })
    const show = ['mayfly', 'config', 'show', '--server-config', '/etc/mayfly/mayfly.yaml', '--origin']
    expect((await root.run(show)).stdout).toMatch(
      /^data_dir +\/var\/lib\/mayfly +\/etc\/mayfly\/mayfly\.yaml:/m,
    )
  })

  test('an upgrade after mayfly init, without a terminal, keeps the configuration and the data', async () => {
    expect(await server.stop()).toBe(0)
    const given = [
      '--yes',
      '--issuer',
      'https://mayfly.example.com',
      '--master-key-file',
      '/var/lib/mayfly/master.key',
    ]
    expect(await root.run(['mayfly', 'init', ...given])).toMatchObject({ code: 0 })
    const own = await readFile(inRoot('etc/mayfly/mayfly.yaml'), 'utf8')
    expect(own).toContain('issuer: https://mayfly.example.com')
    // Were it a conffile, dpkg would ask about the other text of the new version.
    const other = inRoot('other')
    execFileSync('dpkg-deb', ['-R', inRoot(`mayfly_${NEW}_amd64.deb`), other])
    await appendFile(join(other, 'usr/share/mayfly/mayfly.yaml'), '# another line\n')
    execFileSync('dpkg-deb', ['-Zgzip', '-b', other, inRoot(`mayfly_${NEW}_amd64.deb`)], { stdio: 'ignore' })
    expect(await install(NEW)).toMatchObject({ code: 0 })
    expect(await readFile(inRoot('etc/mayfly/mayfly.yaml'), 'utf8')).toBe(own)
    expect(await root.run(['mayfly', '--version'])).toMatchObject({ stdout: `${NEW}\n` })
    expect(await readFile(inRoot('etc/mayfly/mayfly.yaml'), 'utf8')).toContain(`listen: 127.0.0.1:${port}`)
    await start()
    expect(await get()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/) })
    const issued = (await admin('audit', '--action', 'credential.issued')).trim().split('\n')
    expect(issued.map((line) => JSON.parse(line).agent_name)).toEqual(['ci', 'talker', 'ci'])
  })

  test('it works after a restart', async () => {
    expect(await server.stop()).toBe(0)
    await start()
    expect(await get()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/) })
    expect(await server.stop()).toBe(0)
  })

  test('removing it keeps the configuration and the data', async () => {
    expect(await root.run(['dpkg', '--remove', 'mayfly'], FRONTEND)).toMatchObject({ code: 0 })
    expect(existsSync(inRoot('usr/bin/mayfly'))).toBe(false)
    expect((await stat(inRoot('var/lib/mayfly/mayfly.db'))).size).toBeGreaterThan(0)
    expect(existsSync(inRoot('etc/mayfly/mayfly.yaml'))).toBe(true)
  })

  test('purging it deletes the data and the user, and leaves what the package did not make', async () => {
    await writeFile(inRoot('etc/mayfly/master.key'), 'as mayfly init makes it')
    expect(await root.run(['apt-get', 'purge', '-y', 'mayfly'], FRONTEND)).toMatchObject({ code: 0 })
    expect(existsSync(inRoot('var/lib/mayfly'))).toBe(false)
    expect((await readdir(inRoot('etc/mayfly'))).sort()).toEqual(['conf.d', 'master.key'])
    expect(await root.run(['getent', 'passwd', 'mayfly'])).toMatchObject({ stdout: '' })
  })
})

const FRONTEND = { env: { DEBIAN_FRONTEND: 'noninteractive' } }
