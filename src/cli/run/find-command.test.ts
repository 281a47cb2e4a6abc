import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findCommand } from './find-command.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-find-'))
  await mkdir(join(home, 'one', 'a-directory'), { recursive: true })
  await mkdir(join(home, 'two'))
  await writeFile(join(home, 'one', 'plain'), 'text')
  await writeFile(join(home, 'one', 'shadowed'), 'text')
  for (const name of ['tool', 'shadowed']) {
    await writeFile(join(home, 'two', name), '#!/bin/sh\n')
    await chmod(join(home, 'two', name), 0o755)
  }
  await symlink('tool', join(home, 'two', 'linked'))
  await symlink('nowhere', join(home, 'two', 'dangling'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

test.each([
  ['tool', 'two/tool'],
  ['linked', 'two/linked'],
  ['shadowed', 'two/shadowed'],
  ['./two/tool', 'two/tool'],
  ['two/tool', 'two/tool'],
  ['plain', 126],
  ['a-directory', 126],
  ['./one', 126],
  ['one/plain', 126],
  ['dangling', 127],
  ['nothing', 127],
  ['one/plain/below', 127],
  ['', 127],
])('%o', async (command, expected) => {
  const path = `${join(home, 'one')}::two`
  const found = await findCommand(command, { path, cwd: home })
  expect(found).toBe(typeof expected === 'number' ? expected : join(home, expected))
})

test('without a PATH, searches the usual places', async () => {
  expect(await findCommand('sh', { path: undefined, cwd: home })).toBe('/usr/bin/sh')
})
