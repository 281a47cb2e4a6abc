import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canMount } from '../support/mount.ts'

const SCRIPTS = fileURLToPath(new URL('../../packaging/debian/', import.meta.url))

/** The accounts of this machine, as a copy that the scripts change with its own programs. */
describe.skipIf(!canMount)('the scripts of the package', () => {
  let place: string
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'mayfly-scripts-'))
    execFileSync('cp', ['-a', '/etc', place])
    for (const made of ['etc/mayfly', 'lib']) mkdirSync(join(place, made), { recursive: true })
    inside('userdel mayfly || :; groupdel mayfly || :; touch /etc/mayfly/mayfly.yaml')
  })
  afterEach(() => rmSync(place, { recursive: true, force: true }))

  /** Runs a line of shell where /etc and /var/lib are those copies. */
  function inside(line: string): string {
    const mounts = `mount --bind ${place}/etc /etc; mount --bind ${place}/lib /var/lib
      [ ! -d /run/systemd ] || mount -t tmpfs tmpfs /run/systemd`
    return execFileSync('unshare', ['--mount', 'sh', '-ec', `${mounts}\n${line}`], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }
  const install = () => inside(`${SCRIPTS}postinst configure`)
  const purge = () => inside(`${SCRIPTS}postrm purge`)
  const accounts = () => inside('getent passwd mayfly | cut -d: -f1,3; getent group mayfly | cut -d: -f1,3')
  const owner = () => inside('stat -c %U:%G /var/lib/mayfly').trim()

  test('make an account and remove it again', () => {
    install()
    expect(owner()).toBe('mayfly:mayfly')
    purge()
    expect(accounts()).toBe('')
  })

  test('use a group that is there, and keep it', () => {
    inside('groupadd --gid 4242 mayfly')
    install()
    expect(owner()).toBe('mayfly:mayfly')
    purge()
    expect(accounts()).toBe('mayfly:4242\n')
  })

  test('use an account that is there, and keep it', () => {
    inside('useradd --system --uid 4243 --gid nogroup mayfly')
    install()
    expect(owner()).toBe('mayfly:mayfly')
    purge()
    expect(accounts()).toBe('mayfly:4243\n')
  })

  test('purging removes the data and leaves what they did not make', () => {
    inside(`rm /etc/mayfly/mayfly.yaml; mkdir -p ${place}/share`)
    // As /usr/share/mayfly, which is not there.
    const made = 'echo configuration >> /etc/mayfly/.made-by-package; echo x > /etc/mayfly/mayfly.yaml'
    inside(`touch /etc/mayfly/mayfly.yaml; ${SCRIPTS}postinst configure; ${made}`)
    inside('mkdir /etc/mayfly/conf.d; echo x > /etc/mayfly/conf.d/a.yaml; echo x > /etc/mayfly/master.key')
    inside('echo x > /var/lib/mayfly/mayfly.db')
    purge()
    expect(inside('cd /etc/mayfly; find . -type f | sort; ls /var/lib')).toBe(
      './conf.d/a.yaml\n./master.key\n',
    )
  })

  test('purging leaves a configuration that was there before', () => {
    install()
    purge()
    expect(inside('ls -A /etc/mayfly')).toBe('mayfly.yaml\n')
  })

  test('make nothing twice', () => {
    install()
    install()
    purge()
    expect(accounts()).toBe('')
  })
})
