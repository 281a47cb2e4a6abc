import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createOutput } from './output.ts'
import { ask, askSecret, confirm, readSecretFile, readStdin } from './prompt.ts'
import { Interrupted } from './surroundings.ts'

function terminal(isTTY: boolean, stop = new AbortController()) {
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const stderr = new PassThrough()
  let shown = ''
  stderr.on('data', (chunk) => {
    shown += chunk
  })
  const out = createOutput({ stdout: stderr, stderr, env: {} }, false)
  return { stdin, stderr, out, signal: stop.signal, cwd: '/', stop, shown: () => shown }
}

test('returns the answer, or the default for an empty one', async () => {
  const one = terminal(true)
  one.stdin.write(' Ada \n')
  expect(await ask(one, 'Name: ')).toBe('Ada')
  expect(one.shown()).toContain('Name: ')
  const two = terminal(true)
  two.stdin.write('\n')
  expect(await ask(two, 'Port: ', { default: '5432' })).toBe('5432')
})

test('a question from outside steers no terminal', async () => {
  const one = terminal(true)
  one.stdin.write('1\n')
  await ask(one, 'a\x1b[2J\x9b\u202eb\nc ')
  one.stdin.write('2\r')
  await askSecret(one, 'd\x1b]0;x\x07 ')
  expect(one.shown()).toContain('a\ufffd[2J\ufffd\ufffdb c ')
  expect(one.shown()).toContain('d\ufffd]0;x\ufffd ')
  for (const steering of ['\x1b[2J', '\x1b]', '\x9b', '\u202e', '\x07'])
    expect(one.shown()).not.toContain(steering)
})

test('several questions in a row, typed ahead or not', async () => {
  const one = terminal(true)
  const first = ask(one, 'a ')
  one.stdin.write('1\n')
  expect(await first).toBe('1')
  const second = askSecret(one, 'b ')
  one.stdin.write('2\r')
  expect(await second).toBe('2')
  const third = confirm(one, 'c?')
  one.stdin.write('YES\n')
  expect(await third).toBe(true)
})

test('pasted lines answer the questions in turn', async () => {
  const one = terminal(true)
  one.stdin.write('1\n2\n3\r4\n5\n')
  expect(await ask(one, 'a ')).toBe('1')
  expect(await ask(one, 'b ')).toBe('2')
  expect(await askSecret(one, 'c ')).toBe('3')
  expect(await askSecret(one, 'd ')).toBe('4')
  expect(await ask(one, 'e ')).toBe('5')
})

test.each([
  ['y', true],
  ['Yes', true],
  ['', false],
  ['n', false],
  ['yess', false],
])('confirming: %j is %s', async (typed, answer) => {
  const one = terminal(true)
  one.stdin.write(`${typed}\n`)
  expect(await confirm(one, 'Sure?')).toBe(answer)
})

describe('without a terminal', () => {
  test.each([ask, askSecret, confirm])(
    'reports wrong usage and names the alternative: %o',
    async (question) => {
      await expect(
        question(terminal(false), 'Delete it?', { otherwise: 'Give --yes.' }),
      ).rejects.toMatchObject({
        exitCode: 2,
        message: 'There is no terminal to ask: Delete it.',
        hint: 'Give --yes.',
      })
    },
  )

  test.each([ask, askSecret])('does not take the end of input for an answer: %o', async (question) => {
    const one = terminal(true)
    one.stdin.end()
    await expect(question(one, 'Name: ')).rejects.toMatchObject({
      exitCode: 2,
      message: 'No answer was given.',
    })
  })

  test.each([ask, askSecret])('a signal ends the question: %o', async (question) => {
    const one = terminal(true)
    const asked = question(one, 'Name: ')
    one.stop.abort(new Interrupted(15))
    await expect(asked).rejects.toMatchObject({ exitCode: 143 })
  })
})

test('Ctrl-D and Ctrl-C while a secret is typed', async () => {
  for (const [key, exitCode] of [
    ['\u0004', 2],
    ['\u0003', 130],
  ] as const) {
    const one = terminal(true)
    one.stdin.write(`abc${key}`)
    await expect(askSecret(one, 'Token: ')).rejects.toMatchObject({ exitCode })
    expect(one.shown()).not.toContain('abc')
  }
})

describe('standard input', () => {
  test('as a whole, and not more than is sensible', async () => {
    const one = terminal(false)
    one.stdin.end('a\u00e4\nb')
    expect(await readStdin(one)).toBe('a\u00e4\nb')
    const two = terminal(false)
    two.stdin.end('x'.repeat(11))
    await expect(readStdin(two, 10)).rejects.toMatchObject({ exitCode: 2 })
  })

  test('ends with the signal', async () => {
    const one = terminal(false)
    const read = readStdin(one)
    one.stop.abort(new Interrupted(2))
    await expect(read).rejects.toMatchObject({ exitCode: 130 })
  })
})

test('a secret from a file loses only one trailing line break', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-secret-'))
  const one = { ...terminal(false), cwd: directory }
  for (const [text, secret] of [
    ['a b \n', 'a b '],
    ['x\r\n', 'x'],
    ['x\n\n', 'x\n'],
    ['x', 'x'],
  ] as const) {
    await writeFile(join(directory, 's'), text)
    expect(await readSecretFile(one, 's')).toBe(secret)
  }
  await writeFile(join(directory, 's'), '\n')
  await expect(readSecretFile(one, 's')).rejects.toMatchObject({ exitCode: 2 })
  one.stdin.end('typed\n')
  expect(await readSecretFile(one, '-')).toBe('typed')
})
