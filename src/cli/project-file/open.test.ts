import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isAllowed, readAllowed, recordAllowed, requireAllowed } from './allowed.ts'
import { openProjectFile } from './open.ts'
import { readProjectFile } from './read.ts'

const YAML = 'credentials: { demo: }\n'
const OTHER = 12_345

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-project-'))
  execFileSync('mkfifo', [join(home, 'pipe')])
})
afterAll(() => rm(home, { recursive: true, force: true }))

const faultOf = (name: string, trust = {}) =>
  openProjectFile({ cwd: home }, name, trust).then(
    () => undefined,
    (error: Error) => error.message,
  )

test.each([
  ['is not there', 'nowhere.yaml', 'The file "nowhere.yaml" does not exist.'],
  ['is a directory', '.', '. is not a regular file.'],
  ['is a device', '/dev/zero', '/dev/zero is not a regular file.'],
  ['is a pipe that nobody writes to', 'pipe', 'pipe is not a regular file.'],
])('refuses a file that %s', async (_, name, message) => {
  expect(await faultOf(name)).toBe(message)
})

test('refuses a file that is too large, also one that does not tell its size', async () => {
  const message = 'is larger than 65536 bytes.'
  await writeFile(join(home, 'large.yaml'), `${YAML}#${'x'.repeat(65_536)}`)
  await writeFile(join(home, 'full.yaml'), YAML.padEnd(65_536))
  await writeFile(join(home, 'empty.yaml'), '')
  expect(await faultOf('large.yaml')).toBe(`large.yaml ${message}`)
  expect(await faultOf('full.yaml')).toBeUndefined()
  expect((await openProjectFile({ cwd: home }, 'empty.yaml')).bytes).toHaveLength(0)
  if (process.platform === 'linux') expect(await faultOf('/proc/kallsyms')).toBe(`/proc/kallsyms ${message}`)
})

test('repeats no line of the file that a link leads to', async () => {
  const secret = 'hunter2-hunter2'
  await writeFile(join(home, 'secrets'), `${secret}: ${secret}\n? ${secret} ${secret}\n: ${secret}\n`)
  await symlink('secrets', join(home, 'link.yaml'))
  const file = await openProjectFile({ cwd: home }, 'link.yaml')
  const error = await readProjectFile(file).catch((cause: Error) => cause)
  expect(error).toMatchObject({
    name: 'CliError',
    message: expect.stringContaining('link.yaml:1:1: this key'),
  })
  expect(JSON.stringify([error, (error as Error).message])).not.toContain('hunter2')
})

test.runIf(process.getuid?.() === 0)(
  'refuses a file of another user, or that every user can change, unless the directory is trusted',
  async () => {
    const [theirs, open, group] = await Promise.all(
      ['theirs.yaml', 'open.yaml', 'group.yaml'].map(async (name) => {
        await writeFile(join(home, name), YAML)
        return name
      }),
    )
    await chown(join(home, theirs ?? ''), OTHER, OTHER)
    await chmod(join(home, open ?? ''), 0o666)
    await chmod(join(home, group ?? ''), 0o664)
    expect(await faultOf('theirs.yaml')).toBe('theirs.yaml belongs to another user.')
    expect(await faultOf('open.yaml')).toBe('open.yaml can be changed by every user.')
    expect(await faultOf('group.yaml')).toBeUndefined()
    for (const name of ['theirs.yaml', 'open.yaml'])
      expect(await faultOf(name, { isTrusted: true })).toBeUndefined()
  },
)

test('what is compared with the allowed content is what is parsed, whatever the file becomes meanwhile', async () => {
  const where = { env: {}, home, cwd: home }
  await writeFile(join(home, '.mayfly.yaml'), YAML)
  const shown = await openProjectFile(where, '.mayfly.yaml')
  await writeFile(join(home, '.mayfly.yaml'), 'credentials: { evil: }\n')
  await recordAllowed(where, shown)
  expect(await readProjectFile(shown)).toMatchObject({ credentials: [{ name: 'demo' }] })
  const changed = await openProjectFile(where, '.mayfly.yaml')
  expect(isAllowed(await readAllowed(where, changed.path), changed)).toBe(false)
  await expect(requireAllowed(where, changed)).rejects.toThrow(
    '.mayfly.yaml has changed since it was allowed.',
  )
  await expect(requireAllowed(where, shown)).resolves.toBeUndefined()
})
