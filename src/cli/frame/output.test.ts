import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createOutput, listing, oneLine, plain, table } from './output.ts'

function streams(isTTY: boolean) {
  const texts = { out: '', err: '' }
  const to = (name: 'out' | 'err') =>
    Object.assign(
      new Writable({
        write: (chunk, _, done) => {
          texts[name] += String(chunk)
          done()
        },
      }),
      { isTTY, columns: 20 },
    )
  return { texts, stdout: to('out'), stderr: to('err') }
}

test('writes a result unchanged', async () => {
  const { texts, ...io } = streams(true)
  await createOutput({ ...io, env: {} }, false).result('\x1b[31m\x07secret')
  expect(texts).toEqual({ out: '\x1b[31m\x07secret\n', err: '' })
})

test('reports a failed write as an error', async () => {
  const { stderr } = streams(false)
  const full = new Writable({
    write: (_, __, done) => done(Object.assign(new Error('full'), { code: 'ENOSPC' })),
  })
  full.on('error', () => {})
  await expect(createOutput({ stdout: full, stderr, env: {} }, false).result('x')).rejects.toMatchObject({
    code: 'ENOSPC',
  })
})

describe('progress', () => {
  test('is replaced and taken away on a terminal', async () => {
    const { texts, ...io } = streams(true)
    const out = createOutput({ ...io, env: {} }, false)
    out.progress('one and more than fits in there')
    out.progress('two')
    await out.result('done')
    expect(texts).toEqual({
      out: 'done\n',
      err: '\r\x1b[2Kone and more than f\r\x1b[2Ktwo\r\x1b[2K',
    })
  })

  test.each([
    ['no terminal', false, false],
    ['JSON', true, true],
  ])('is silent: %s', (_, isTTY, isJson) => {
    const { texts, ...io } = streams(isTTY)
    createOutput({ ...io, env: {} }, isJson).progress('one')
    expect(texts.err).toBe('')
  })
})

test.each([
  [true, {}, '\x1b[31mx\x1b[0m'],
  [true, { NO_COLOR: '' }, '\x1b[31mx\x1b[0m'],
  [true, { NO_COLOR: '1' }, 'x'],
  [true, { TERM: 'dumb' }, 'x'],
  [false, {}, 'x'],
])('colour on a terminal only, and not with NO_COLOR: %j %j', (isTTY, env, painted) => {
  expect(createOutput({ ...streams(isTTY), env }, false).paint('red', 'x')).toBe(painted)
})

test('show and report: JSON or words', async () => {
  const words = streams(false)
  const asWords = createOutput({ ...words, env: {} }, false)
  await asWords.show({ a: 1 }, () => 'words')
  await asWords.show({ a: 1 }, () => '')
  await asWords.report({ a: 1 }, 'done')
  expect(words.texts).toEqual({ out: 'words\n', err: 'done\n' })
  const json = streams(false)
  const asJson = createOutput({ ...json, env: {} }, true)
  await asJson.show({ a: 1 }, () => 'words')
  await asJson.report({ b: 1 }, 'done')
  await asJson.json({ c: 1 }, 'line')
  expect(json.texts).toEqual({ out: '{\n  "a": 1\n}\n{\n  "b": 1\n}\n{"c":1}\n', err: '' })
})

test.each([
  ['a\x1b]0;title\x07b', 'a\ufffd]0;title\ufffdb'],
  ['a\x1b[2Jb', 'a\ufffd[2Jb'],
  ['\x1b[31mred\x1b[0m', '\x1b[31mred\x1b[0m'],
  ['a\rb', 'a\ufffdb'],
  ['a\u202eb\u2066', 'a\ufffdb\ufffd'],
  ['a\x9bb', 'a\ufffdb'],
  ['two\nlines\t', 'two\nlines\t'],
])('escapes outside text that could steer the terminal: %j', (text, shown) => {
  expect(plain(text)).toBe(shown)
})

test('a cell is one line without colours', () => {
  expect(oneLine('a\n\tb\x1b[31mc')).toBe('a b\ufffd[31mc')
})

test('tables and listings', () => {
  expect(
    table(
      ['ID', 'NAME'],
      [
        ['1', 'long name'],
        ['22', 'x\ny'],
      ],
    ),
  ).toBe('ID  NAME\n1   long name\n22  x y')
  expect(table(['ID', 'NAME'], [])).toBe('ID  NAME')
  expect(listing({ Name: 'x', 'Last used': 'never', Gone: undefined })).toBe('Name:      x\nLast used: never')
})
