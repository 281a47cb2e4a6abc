import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openBrowser } from './open-browser.ts'

const ADDRESS = 'https://mayfly.example.com/console/allow?state=a&host=$(touch%20owned)'
let bin: string
beforeAll(async () => {
  bin = await mkdtemp(join(tmpdir(), 'mayfly-open-'))
  for (const program of ['xdg-open', 'open', 'rundll32']) {
    await writeFile(
      join(bin, program),
      `#!/bin/sh\nprintf '%s\\n' "$@" >"${bin}/$(basename "$0").new"\nmv "${bin}/$(basename "$0").new" "${bin}/$(basename "$0").given"\n`,
    )
    await chmod(join(bin, program), 0o755)
  }
})
afterAll(() => rm(bin, { recursive: true, force: true }))

const env = (more: Record<string, string> = {}) => ({ PATH: `${bin}:/usr/bin:/bin`, ...more })

test.each<[NodeJS.Platform, string, string[], Record<string, string>]>([
  ['linux', 'xdg-open', [], { DISPLAY: ':0' }],
  ['freebsd', 'xdg-open', [], { WAYLAND_DISPLAY: 'wayland-0' }],
  ['darwin', 'open', [], {}],
  ['win32', 'rundll32', ['url.dll,FileProtocolHandler'], {}],
])('on %s it gives the address to %s as it is', async (platform, program, before, more) => {
  const file = join(bin, `${program}.given`)
  await rm(file, { force: true })
  expect(await openBrowser({ env: env(more), platform }, ADDRESS)).toBe(true)
  const given = await vi.waitFor(() => readFile(file, 'utf8'), { timeout: 20_000 })
  expect(given.trimEnd().split('\n')).toEqual([...before, ADDRESS])
})

test.each<[string, NodeJS.Platform, Record<string, string>]>([
  ['without a display', 'linux', {}],
  ['with an empty one', 'linux', { DISPLAY: '' }],
  ['over SSH', 'linux', { DISPLAY: 'localhost:10.0', SSH_CONNECTION: '192.0.2.7 1 192.0.2.8 22' }],
  ['over SSH to a Mac', 'darwin', { SSH_CONNECTION: '192.0.2.7 1 192.0.2.8 22' }],
  ['without a program for it', 'linux', { DISPLAY: ':0', PATH: '/nowhere' }],
])('opens nothing %s', async (_, platform, more) => {
  expect(await openBrowser({ env: env(more), platform }, ADDRESS)).toBe(false)
})
