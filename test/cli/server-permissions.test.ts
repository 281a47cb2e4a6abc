import { execFileSync, spawnSync } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { COMPILE_CACHE } from '../support/compile-cache.ts'
import { joinedMain } from '../support/joined-main.ts'
import { newMasterKey } from '../support/master-key.ts'
import { startServerProcess } from '../support/server-process.ts'

/** Root may read everything, so that the server runs as another user here. */
const isRootOnLinux = process.platform === 'linux' && process.getuid?.() === 0
const OTHER = 65_533

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-permissions-'))
  await chmod(folder, 0o755)
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (name: string) => join(folder, name)
function server(...argv: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [joinedMain(), 'server', '--listen', '127.0.0.1:0', ...argv],
    { uid: OTHER, gid: OTHER, cwd: '/', env: { NODE_COMPILE_CACHE: COMPILE_CACHE }, encoding: 'utf8' },
  )
  return { status, stdout, stderr }
}

describe.runIf(isRootOnLinux)(
  'what the server may not use is one line with the command that fixes it',
  () => {
    test.each<[string, () => Promise<string[]>, RegExp]>([
      [
        'a data directory that does not exist',
        async () => ['--data-dir', at('var/mayfly')],
        /^mayfly: data_dir: \S+ does not exist, and this user may not make it\. Run: (sudo install -d .+)\n$/,
      ],
      [
        'a data directory of another user',
        async () => {
          await mkdir(at('data'), { mode: 0o700 })
          return ['--data-dir', at('data')]
        },
        /^mayfly: data_dir: this user may not use \S+\. Run: (sudo chown -R .+)\n$/,
      ],
      [
        'a database that root made',
        async () => {
          const dataDir = at('data')
          const first = await startServerProcess({ dataDir })
          await first.terminate()
          await chown(dataDir, OTHER, OTHER)
          await chown(join(dataDir, 'master.key'), OTHER, OTHER)
          return ['--data-dir', dataDir]
        },
        /^mayfly: data_dir: this user may not use \S+mayfly\.\w+\. Run: (sudo chown -R .+)\n$/,
      ],
      [
        'a configuration of another user',
        async () => {
          await mkdir(at('data'), { mode: 0o700 })
          await chown(at('data'), OTHER, OTHER)
          await writeFile(at('m.yaml'), `data_dir: ${at('data')}\n`, { mode: 0o600 })
          return ['--config', at('m.yaml')]
        },
        /^mayfly: flag --config: the file \S+ is not readable by this user\. Run: (sudo chown .+)\n$/,
      ],
      [
        'a configuration in a directory that is closed',
        async () => {
          await mkdir(at('data'), { mode: 0o700 })
          await chown(at('data'), OTHER, OTHER)
          await mkdir(at('etc'), { mode: 0o700 })
          await writeFile(at('etc/m.yaml'), `data_dir: ${at('data')}\n`, { mode: 0o644 })
          return ['--config', at('etc/m.yaml')]
        },
        /^mayfly: flag --config: the file \S+ is not readable by this user\. Run: (sudo chmod a\+x .+)\n$/,
      ],
      [
        'a master key of another user',
        async () => {
          await mkdir(at('data'), { mode: 0o700 })
          await chown(at('data'), OTHER, OTHER)
          await writeFile(at('key'), newMasterKey(), { mode: 0o400 })
          return ['--data-dir', at('data'), '--master-key-file', at('key')]
        },
        /^mayfly: \S+key: the master key file is not readable by this user\. Run: (sudo chown .+)\n$/,
      ],
      [
        'a place where it cannot make the master key',
        async () => {
          await mkdir(at('data'), { mode: 0o700 })
          await chown(at('data'), OTHER, OTHER)
          return ['--data-dir', at('data'), '--master-key-file', at('key')]
        },
        /^mayfly: \S+key: the master key cannot be created here: .* Run: (printf .+)\n$/,
      ],
    ])('%s', async (what, prepare, message) => {
      const argv = await prepare()
      const { status, stdout, stderr } = server(...argv)
      expect({ status, stdout, stderr }).toEqual({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(message),
      })
      const fix = message.exec(stderr)?.[1] ?? 'false'
      execFileSync('sh', ['-c', fix.replaceAll('sudo ', '')])
      // One of them starts once more; for the others it is enough that the command works.
      if (what !== 'a database that root made') return
      const by = ['setpriv', `--reuid=${OTHER}`, `--regid=${OTHER}`, '--clear-groups']
      const running = await startServerProcess({ dataDir: argv[1] ?? '', by })
      expect((await running.terminate()).code).toBe(0)
    })
  },
)

test.runIf(isRootOnLinux)(
  'backup and restore say in one line that the data belong to another user',
  async () => {
    await mkdir(at('data'), { mode: 0o700 })
    await writeFile(at('data/mayfly.db'), '', { mode: 0o600 })
    await writeFile(at('key'), newMasterKey(), { mode: 0o600 })
    await chown(at('key'), OTHER, OTHER)
    await writeFile(at('b.db'), '', { mode: 0o644 })
    for (const [verb, file] of [
      ['backup', '/tmp/none.db'],
      ['restore', at('b.db')],
    ] as const) {
      const { status, stderr } = spawnSync(
        process.execPath,
        [joinedMain(), verb, file, '--data-dir', at('data'), '--master-key-file', at('key')],
        { uid: OTHER, gid: OTHER, cwd: '/', env: { NODE_COMPILE_CACHE: COMPILE_CACHE }, encoding: 'utf8' },
      )
      expect([status, stderr]).toEqual([
        1,
        expect.stringMatching(/^mayfly: This user may not use .*data\S*\. Run it as root, with sudo, .*\n$/),
      ])
    }
  },
)

describe.runIf(isRootOnLinux)('root, in the data directory of another user,', () => {
  const mayfly = (...argv: string[]) =>
    spawnSync(process.execPath, [joinedMain(), ...argv], {
      cwd: folder,
      env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
      encoding: 'utf8',
    })
  /** A store of the other user, and a backup of it. */
  async function backUp() {
    await mkdir(at('data'), { mode: 0o700 })
    await chown(at('data'), OTHER, OTHER)
    const by = ['setpriv', `--reuid=${OTHER}`, `--regid=${OTHER}`, '--clear-groups']
    await (await startServerProcess({ dataDir: at('data'), by })).terminate()
    return mayfly('backup', at('b.db'), '--data-dir', at('data'))
  }
  const ownersIn = async (directory: string) => {
    const names = await readdir(directory)
    return new Set(await Promise.all(names.map(async (name) => (await stat(join(directory, name))).uid)))
  }

  test('backs up and restores for that user', async () => {
    expect((await backUp()).status).toBe(0)
    expect([(await stat(at('b.db'))).uid, await ownersIn(at('data'))]).toEqual([0, new Set([OTHER])])
    await mkdir(at('new'), { mode: 0o700 })
    await chown(at('new'), OTHER, OTHER)
    const key = join(at('data'), 'master.key')
    expect(mayfly('restore', at('b.db'), '--data-dir', at('new'), '--master-key-file', key).status).toBe(0)
    expect([(await readdir(at('new'))).sort(), await ownersIn(at('new'))]).toEqual([
      ['mayfly.db', 'mayfly.lock'],
      new Set([OTHER]),
    ])
  })

  test('follows no link of that user to a file of root', async () => {
    expect((await backUp()).status).toBe(0)
    const key = join(at('data'), 'master.key')
    await writeFile(at('victim'), 'of root', { mode: 0o600 })
    await mkdir(at('new'), { mode: 0o700 })
    await symlink(at('victim'), join(at('new'), 'mayfly.lock'))
    await chown(at('new'), OTHER, OTHER)
    expect(mayfly('restore', at('b.db'), '--data-dir', at('new'), '--master-key-file', key).status).toBe(1)
    await rm(join(at('data'), 'mayfly.db-wal'), { force: true })
    await symlink(at('victim'), join(at('data'), 'mayfly.db-wal'))
    mayfly('backup', at('c.db'), '--data-dir', at('data'))
    const { uid, size } = await stat(at('victim'))
    expect([uid, size]).toEqual([0, 'of root'.length])
  })
})

test('a configuration that does not exist is one line with the command that makes it', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [joinedMain(), 'server', '--config', at('none/mayfly.yaml')],
    { cwd: folder, env: { NODE_COMPILE_CACHE: COMPILE_CACHE }, encoding: 'utf8' },
  )
  const line = `mayfly: flag --config: the file "${at('none/mayfly.yaml')}" does not exist. Run: mayfly init --config ${at('none/mayfly.yaml')}\n`
  expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: '', stderr: line })
})
