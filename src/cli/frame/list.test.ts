import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { type ListOptions, showList } from './list.ts'
import { createOutput } from './output.ts'
import type { Context } from './verb.ts'

/** What a listing of so many things writes, and how it asked for them. */
async function shown(
  count: number,
  options: ListOptions = {},
  where: { tty?: boolean; json?: boolean } = {},
) {
  const texts = { out: '', err: '' }
  const to = (name: 'out' | 'err') =>
    Object.assign(
      new Writable({
        write: (chunk, _, done) => {
          texts[name] += String(chunk)
          done()
        },
      }),
      { isTTY: where.tty === true },
    )
  const io = { stdout: to('out'), stderr: to('err'), env: {} }
  const context = { ...io, out: createOutput(io, where.json === true) } as unknown as Context
  let read = 0
  let limit = 0
  const things = async function* (page: { readonly limit: number }) {
    limit = page.limit
    for (read = 1; read <= count; read += 1) yield { name: `t${read}` }
  }
  await showList(context, options, things, {
    things: 'things',
    none: 'No things.',
    heading: ['NAME'],
    cells: ({ name }) => [name],
  })
  // What follows the last line of progress.
  const notes = texts.err.split('\r\x1b[2K').at(-1)
  return { out: texts.out, rows: texts.out.trimEnd().split('\n').length - 1, notes, read, limit }
}

test('a terminal gets a page, and how many there are', async () => {
  const page = await shown(5_000, {}, { tty: true })
  expect(page).toMatchObject({
    rows: 50,
    notes: '50 of 5,000 things. See more with --limit NUMBER or --all.\n',
    limit: 1_000,
  })
  expect(page.out.startsWith('\x1b[1mNAME\x1b[0m\nt1\n')).toBe(true)
})

test('a terminal that has all of them on a page gets no word of it', async () => {
  expect(await shown(50, {}, { tty: true })).toMatchObject({ rows: 50, notes: '' })
  expect(await shown(51, {}, { tty: true })).toMatchObject({
    rows: 50,
    notes: expect.stringMatching(/^50 of 51 things/),
  })
})

test('very many are not counted to the end', async () => {
  const page = await shown(1_000_000, {}, { tty: true })
  expect(page.notes).toBe('50 of more than 10,000 things. See more with --limit NUMBER or --all.\n')
  expect(page.read).toBe(10_001)
})

test.each([
  ['--all', { all: true }, { tty: true }, 3_000],
  ['--limit', { limit: '70' }, { tty: true }, 70],
  ['a pipe', {}, {}, 3_000],
])('no page with %s', async (_, options, where, rows) => {
  expect(await shown(3_000, options, where)).toMatchObject({ rows, notes: '' })
})

test('reads no more than it shows, but at a terminal', async () => {
  expect(await shown(3_000, { limit: '70' })).toMatchObject({ read: 70, limit: 70 })
  expect(await shown(3_000, { limit: '2000' })).toMatchObject({ read: 2_000, limit: 1_000 })
})

test('all of them as JSON, even at a terminal', async () => {
  const { out, notes } = await shown(60, {}, { tty: true, json: true })
  expect([JSON.parse(out).length, notes]).toEqual([60, ''])
})

test('says that there are none, on standard error', async () => {
  expect(await shown(0)).toMatchObject({ out: '', notes: 'No things.\n' })
  expect(await shown(0, {}, { json: true })).toMatchObject({ out: '[]\n', notes: '' })
})

test.each([
  [{ limit: '0' }],
  [{ limit: '-1' }],
  [{ limit: '1e3' }],
  [{ limit: 'many' }],
  [{ limit: '5', all: true }],
])('wrong usage: %j', async (options) => {
  await expect(shown(5, options)).rejects.toMatchObject({ exitCode: 2 })
})
