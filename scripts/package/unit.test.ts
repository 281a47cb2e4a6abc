import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasPrograms } from '../../test/support/needed-programs.ts'
import { run } from '../../test/support/run-program.ts'

const PACKAGING = fileURLToPath(new URL('../../packaging/', import.meta.url))

test('the unit starts a server that ended by a fault again, for ever', async () => {
  const unit = await readFile(new URL('../../packaging/mayfly.service', import.meta.url), 'utf8')
  const [, head, service] = unit.split(/^\[\w+\]$/m)
  // systemd.unit(5): 0 disables the limit of starts, after which a unit stays down.
  expect(head).toMatch(/^StartLimitIntervalSec=0$/m)
  expect(service).toMatch(/^Restart=on-failure$/m)
  expect(service).toMatch(/^RestartSec=2s$/m)
})

test('the unit of a proxy runs apart from the account that it serves, and begins no other run after somebody ended one', async () => {
  const unit = await readFile(new URL('../../packaging/mayfly-proxy@.service', import.meta.url), 'utf8')
  const [, , service = ''] = unit.split(/^\[\w+\]$/m)
  const of = (name: string) =>
    [...service.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value)
  expect(of('DynamicUser')).toEqual(['yes'])
  expect(of('User')).toEqual(['mayfly-proxy-%i'])
  // What it writes for the account is readable by its group; its own state is not.
  expect([of('Group'), of('UMask'), of('RuntimeDirectoryMode')]).toEqual([['%i'], ['0027'], ['0750']])
  expect(of('StateDirectoryMode')).toEqual(['0700'])
  expect(of('LimitCORE')).toEqual(['0'])
  expect(of('CapabilityBoundingSet')).toEqual([''])
  // Without it Node.js cannot tell the addresses of this machine, and whatever has Mayfly's port is unreachable.
  expect(of('RestrictAddressFamilies')).toEqual([expect.stringMatching(/\bAF_NETLINK\b/)])
  expect(of('RestartPreventExitStatus')).toEqual(['4 5'])
})

test('the unit of a proxy has started when its environment is there, and not where the proxy ends before', async () => {
  const unit = await readFile(join(PACKAGING, 'mayfly-proxy@.service'), 'utf8')
  const line = /^ExecStartPost=(.*)$/m.exec(unit)?.[1]?.replaceAll('$$', '$') ?? ''
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-unit-'))
  const proxy = spawn('sleep', ['1000'])
  try {
    const env = { PATH: process.env['PATH'] ?? '', RUNTIME_DIRECTORY: directory, MAINPID: String(proxy.pid) }
    const [waiting, ending] = [run(['sh', '-c', line], env), once(proxy, 'exit')]
    proxy.kill()
    await ending
    expect(await waiting).toEqual({ code: 1, stdout: '', stderr: '' })
    const late = run(['sh', '-c', line], { ...env, MAINPID: String(process.pid) })
    await writeFile(join(directory, 'env'), 'A=b\n')
    expect(await late).toEqual({ code: 0, stdout: '', stderr: '' })
  } finally {
    proxy.kill()
    await rm(directory, { recursive: true })
  }
})

describe.skipIf(!hasPrograms('systemd-analyze'))('systemd', () => {
  const units = 'usr/lib/systemd/system'
  let root: string
  beforeAll(async () => {
    // What the units of ours need is there: those of systemd, and the programs.
    root = await mkdtemp(join(tmpdir(), 'mayfly-units-'))
    await cp(`/${units}`, join(root, units), { recursive: true, verbatimSymlinks: true })
    for (const program of ['usr/bin/mayfly', 'bin/sh']) {
      await mkdir(dirname(join(root, program)), { recursive: true })
      await writeFile(join(root, program), '', { mode: 0o755 })
    }
  })
  afterAll(() => rm(root, { recursive: true, force: true }))
  /** What it says of the unit and those around it: it returns 0 for keys that it does not know, too. */
  const verify = async (unit: string, change = (text: string) => text) => {
    for (const file of ['mayfly.service', 'mayfly-proxy@.service'])
      await writeFile(join(root, units, file), change(await readFile(join(PACKAGING, file), 'utf8')))
    const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }
    const { stdout, stderr } = await run(
      ['systemd-analyze', 'verify', '--man=no', `--root=${root}`, unit],
      env,
    )
    return stdout + stderr
  }

  test.each(['mayfly.service', 'mayfly-proxy@coder.service'])('has nothing to say of %s', async (unit) => {
    expect(await verify(unit)).toBe('')
    expect(await verify(unit, (text) => text.replace('UMask=', 'Umask='))).toContain("'Umask'")
  })
})
