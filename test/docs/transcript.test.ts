import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Pane, startTerminal, type Terminal } from './terminal.ts'
import { replay } from './transcript.ts'

let home: string
let terminal: Terminal
let panes: Map<string, Pane>
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-transcript-'))
  terminal = await startTerminal()
  panes = new Map()
  for (const name of ['one', 'two'])
    panes.set(name, await terminal.open({ PATH: process.env['PATH'] ?? '', PORT: '4711', HOME: home }, home))
})
afterEach(async () => {
  await terminal.close()
  await rm(home, { recursive: true })
})

const block = (pane: string, text: string) => `\`\`\`console ${pane}\n${text}\n\`\`\`\n`

async function play(text: string, update = false): Promise<string> {
  const path = join(home, 'transcript.md')
  await writeFile(path, text)
  const pane = (name: string) => panes.get(name) as Pane
  await replay(path, { pane, replace: [['8700', '4711']], directory: home }, update)
  return readFile(path, 'utf8')
}

const ID = 'enr_01m802da2cez79zb9vshdxe5qb'
const OTHER = ID.replaceAll('2', '3')

describe('a transcript', () => {
  const whole = [
    'Words.',
    '<!-- file: given.txt -->\n\n```text\ngiven\n```\n',
    block('one', '$ cat given.txt\ngiven\n$ echo $PORT x4711x\n8700 x4711x'),
    block('two goes on', '$ mkfifo way && cat way && echo over\n«C-z»').replace('\n«C-z»', ''),
    block(
      'one',
      '$ read -p "Name: " name\nName: «Ana»\n$ read -sp "Secret: " word && echo && echo $word\nSecret: «x»\nx',
    ),
    block('one', '$ echo first > way'),
    block('two', 'first\nover'),
    block('one', '$ echo ready; cat\nready\n«C-c»\n^C'),
    `And ${ID} is kept.`,
  ].join('\n')

  test('is typed again', async () => {
    expect(await play(whole)).toBe(whole)
  })

  test('is written anew as it was', async () => {
    expect(await play(whole, true)).toBe(whole)
  })

  test('ids differ, and the one that is shown is the one that is typed', async () => {
    const text = block(
      'one',
      `$ cat id.txt\n${ID} at 2026-11-21T22:07:43.444Z\n$ grep -o ${ID} id.txt\n${ID}`,
    )
    await writeFile(join(home, 'id.txt'), `${OTHER} at 2027-01-01T00:00:00.000Z\n`)
    await play(text)
    expect(await play(text, true)).toContain(`$ grep -o ${OTHER} id.txt\n${OTHER}\n`)
  })

  test('written anew it has what is shown', async () => {
    const wrong = block('one', '$ echo one; echo two\nthree')
    expect(await play(wrong, true)).toBe(block('one', '$ echo one; echo two\none\ntwo'))
  })

  test.each([
    ['other output', block('one', '$ echo one\ntwo')],
    ['more output', block('one', '$ seq 2\n1')],
    ['less output', block('one', '$ true\n1')],
    ['another id where one was shown before', block('one', `$ echo id\n${ID}`)],
    ['the rest of nothing', block('one goes on', '$ true') + block('one', 'rest')],
    ['no block', 'Only words.'],
  ])('%s is told', async (_, text) => {
    await expect(play(text)).rejects.toThrow(/shows:|nothing in it/)
  })
})
