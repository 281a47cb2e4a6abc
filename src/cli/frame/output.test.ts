import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createOutput, listing, table } from './output.ts'

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

test.each([
  ['unchanged for a program', false, '\x1b[31m\x07secret\r\n\u202e\n'],
  ['safe for a terminal', true, '\x1b[31m\ufffdsecret\n\ufffd\n'],
])('writes a result %s', async (_, isTTY, written) => {
  const { texts, ...io } = streams(isTTY)
  await createOutput({ ...io, env: {} }, false).result('\x1b[31m\x07secret\r\n\u202e')
  expect(texts).toEqual({ out: written, err: '' })
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

test('what others wrote steers no terminal, in words, notes and JSON', async () => {
  const hostile = 'a\x1b[8mb\x9b2Jc\u202ed\x7f\x1b[31m'
  const { texts, ...io } = streams(false)
  const out = createOutput({ ...io, env: {} }, false)
  await out.show({}, () => hostile)
  out.note(hostile)
  await out.json({ [hostile]: hostile })
  for (const steering of ['\x1b[8', '\x9b', '\u202e', '\x7f'])
    expect(texts.out + texts.err).not.toContain(steering)
  expect(texts.err).not.toContain('\x1b')
  expect(JSON.parse(texts.out.slice(texts.out.indexOf('{')))).toEqual({ [hostile]: hostile })
})

test('a note is coloured after it was made safe', () => {
  const { texts, ...io } = streams(true)
  createOutput({ ...io, env: {} }, false).note('a\x1b[0mb', 'dim')
  expect(texts.err).toBe('\x1b[2ma\ufffd[0mb\x1b[0m\n')
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
