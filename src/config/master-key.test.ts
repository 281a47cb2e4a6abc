import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigError } from '../domain/fault.ts'
import { Secret } from '../domain/secret.ts'
import { loadMasterKeyText } from './master-key.ts'

const KEY = `1:${'ab'.repeat(32)}`
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-key-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const fromFile = (file: string, createIfMissing = false, onCreated?: (file: string) => void) =>
  loadMasterKeyText(
    { masterKey: { from: 'file', file } },
    { createIfMissing, ...(onCreated ? { onCreated } : {}) },
  )
const fromCommand = (argv: string[], commandTimeoutMs = 10_000) =>
  loadMasterKeyText({ masterKey: { from: 'command', argv } }, { createIfMissing: false, commandTimeoutMs })

async function refusal(attempt: Promise<string>): Promise<string> {
  const error = await attempt.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ConfigError)
  const text = String(error)
  expect(text).not.toContain('abab')
  return text
}

describe('file', () => {
  test.each([0o400, 0o600])('reads a file of mode %o', async (mode) => {
    const file = join(folder, 'k')
    await writeFile(file, `${KEY}\n`, { mode })
    expect(await fromFile(file)).toBe(KEY)
  })
  test.each([0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o777])(
    'mode %o is refused, with the way out',
    async (mode) => {
      const file = join(folder, "k'y")
      await writeFile(file, KEY)
      await chmod(file, mode)
      const text = await refusal(fromFile(file, true))
      expect(text).toContain(`mode 0${mode.toString(8)}`)
      expect(text).toContain(`chmod 400 '${folder}/k'\\''y'`)
    },
  )
  test('checks the mode of the target, not of a link', async () => {
    await writeFile(join(folder, 'k'), KEY, { mode: 0o600 })
    await symlink('k', join(folder, 'link'))
    expect(await fromFile(join(folder, 'link'))).toBe(KEY)
    await chmod(join(folder, 'k'), 0o644)
    await refusal(fromFile(join(folder, 'link')))
  })
  test.each([
    ['empty', '', /empty/],
    ['a newline', '\n', /empty/],
    ['binary', Buffer.from([0xff, 0x00]), /UTF-8/],
    ['too large', 'a'.repeat(70_000), /too large/],
  ])('refuses a file that is %s', async (_, content, message) => {
    const file = join(folder, 'k')
    await writeFile(file, content, { mode: 0o600 })
    expect(await refusal(fromFile(file, true))).toMatch(message)
  })
  test('refuses a directory, and a path through a file', async () => {
    await mkdir(join(folder, 'd'), { mode: 0o700 })
    expect(await refusal(fromFile(join(folder, 'd'), true))).toMatch(/is a directory/)
    await writeFile(join(folder, 'f'), '')
    await refusal(fromFile(join(folder, 'f', 'k'), true))
  })
})

describe('creating a key', () => {
  test('creates none unless asked to', async () => {
    const file = join(folder, 'k')
    expect(await refusal(fromFile(file))).toMatch(/missing.*Restore/)
    expect(await readdir(folder)).toEqual([])
  })
  test('creates mode 0400 in a folder of mode 0700, reports it once, and reads it again later', async () => {
    const file = join(folder, 'data', 'deep', 'master.key')
    const told: string[] = []
    const text = await fromFile(file, true, (made) => told.push(made))
    expect(text).toMatch(/^1:[0-9a-f]{64}$/)
    expect(await readFile(file, 'utf8')).toBe(`${text}\n`)
    expect((await stat(file)).mode & 0o777).toBe(0o400)
    expect((await stat(join(folder, 'data'))).mode & 0o777).toBe(0o700)
    expect(await fromFile(file, true, (made) => told.push(made))).toBe(text)
    expect(told).toEqual([file])
    expect(await readdir(join(folder, 'data', 'deep'))).toEqual(['master.key'])
  })
  test('lets concurrent starts agree on one key', async () => {
    const file = join(folder, 'k')
    const told: string[] = []
    const texts = await Promise.all(
      Array.from({ length: 20 }, () => fromFile(file, true, (made) => told.push(made))),
    )
    expect(new Set(texts).size).toBe(1)
    expect(told).toEqual([file])
    expect(await readdir(folder)).toEqual(['k'])
  })
  test('creates a different key each time', async () => {
    expect(await fromFile(join(folder, 'a'), true)).not.toBe(await fromFile(join(folder, 'b'), true))
  })
  test('does not follow a dangling link', async () => {
    await symlink(join(folder, 'elsewhere'), join(folder, 'k'))
    await refusal(fromFile(join(folder, 'k'), true))
    expect(await readdir(folder)).toEqual(['k'])
  })
})

test('reads the key from the environment', async () => {
  const masterKey = { from: 'environment', text: new Secret(KEY) } as const
  expect(await loadMasterKeyText({ masterKey }, { createIfMissing: false })).toBe(KEY)
})

describe('command', () => {
  const node = process.execPath
  test('reads the output without the final newline', async () => {
    expect(await fromCommand([node, '-e', `console.log('${KEY}')`])).toBe(KEY)
  })
  test('runs without a shell', async () => {
    expect(await fromCommand([node, '-p', 'process.argv[1]', '$(id); `id` | cat'])).toBe('$(id); `id` | cat')
  })
  test("hides the server's own variables from the command, and passes the others", async () => {
    process.env['MAYFLY_DATABASE_URL'] = 'x'
    try {
      const keys = await fromCommand([node, '-p', 'Object.keys(process.env).join()'])
      expect(keys).toContain('PATH')
      expect(keys).not.toContain('MAYFLY_')
    } finally {
      delete process.env['MAYFLY_DATABASE_URL']
    }
  })
  test('gives the command no standard input to wait for', async () => {
    expect(
      await fromCommand([node, '-e', `process.stdin.on('end', () => console.log('${KEY}')).resume()`]),
    ).toBe(KEY)
  })
  test.each<[string, string[], RegExp]>([
    [
      'exit code',
      [node, '-e', `console.log('${KEY}'); console.error('${KEY}'); process.exit(3)`],
      /exit code 3/,
    ],
    ['signal', [node, '-e', 'process.kill(process.pid, "SIGTERM")'], /signal/],
    ['nothing', [node, '-e', ''], /empty/],
    ['too much', [node, '-e', 'process.stdout.write("x".repeat(200000))'], /more than/],
    ['no program', ['/no/such/program', KEY], /does not exist/],
    ['not a program', ['/etc/passwd'], /may not run/],
  ])('refuses it and does not show it: %s', async (_, argv, message) => {
    expect(await refusal(fromCommand(argv))).toMatch(message)
  })
  test('kills the command after its time limit', async () => {
    expect(await refusal(fromCommand([node, '-e', 'setInterval(() => {}, 1000)'], 200))).toMatch(
      /within 200 ms/,
    )
  })
})
