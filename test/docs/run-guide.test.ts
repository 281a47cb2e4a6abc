import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isAsShown } from './masks.ts'
import { readGuide } from './read-guide.ts'
import { type GuideOptions, installMayfly, runGuide } from './run-guide.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-guide-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`
const page = () => join(home, 'guide.md')

async function runText(text: string, more: Partial<GuideOptions> = {}) {
  await writeFile(page(), text)
  const env = { PATH: `${join(home, 'bin')}:${process.env['PATH']}`, HOME: home }
  const replace = [['https://example.com', 'http://127.0.0.1:1'] as const]
  return runGuide(page(), { env, cwd: home, replace, update: false, ...more })
}

const ID = 'enr_01m802da2cez79zb9vshdxe5qb'
const OTHER = ID.replaceAll('2', '3')

describe('a page', () => {
  test('writes a file where the replaced name says', async () => {
    const text = `<!-- file: /etc/made.conf -->\n\n${fenced('text', 'a')}${fenced('sh', 'cat /etc/made.conf')}`
    await runText(text, { replace: [['/etc/', `${home}/etc/`]] })
    expect(await readFile(join(home, 'etc/made.conf'), 'utf8')).toBe('a\n')
  })

  test('runs in one shell, in order, with files, hidden lines and replaced text', async () => {
    await installMayfly(join(home, 'bin'))
    const results = await runText(
      [
        'Text with `code`.\n',
        fenced('sh', 'mkdir -p sub && cd sub\nX=1\ncat <<END > here\n$X\nEND'),
        `<!-- file: made/config.yaml -->\n\n${fenced('yaml', "url: 'https://example.com'")}`,
        '<!-- run\nX=$((X + 1))\n-->\n\n',
        `<!-- not run: it would fail -->\n${fenced('sh', 'false')}`,
        fenced('json', '{}'),
        `<!-- cron -->\n\n${fenced('text', '* * * * * root echo cron')}`,
        fenced(
          'console',
          '$ echo $X \\\n>   https://example.com\n2 http://127…\n$ cat made/config.yaml && ls\n…\nhere\nmade',
        ),
        '1. in a list\n\n   ```console\n   $ mayfly --version\n   0.…\n   ```\n',
      ].join('\n'),
    )
    expect(results.map(({ output }) => output)).toEqual([
      '',
      '',
      'cron\n',
      '2 http://127.0.0.1:1\n',
      "url: 'http://127.0.0.1:1'\nhere\nmade\n",
      expect.stringMatching(/^0\./),
    ])
    expect(await readFile(join(home, 'sub/here'), 'utf8')).toBe('1\n')
  })

  test.each([
    [
      'a block that fails',
      fenced('sh', 'echo before\nfalse\necho after'),
      /guide\.md:1: .*code 1.*before\n$/s,
    ],
    ['a pipe that fails', fenced('sh', 'false | cat'), /exit code 1/],
    ['a syntax error', fenced('sh', 'if true'), /exit code [12]/],
    ['other output', fenced('console', '$ echo one\ntwo'), /prints:\none\n.*shows:\ntwo/s],
    ['more output', fenced('console', '$ seq 2\n1'), /prints/],
    ['no output', fenced('console', '$ true\n1'), /prints/],
    ['an id where none is shown', fenced('console', `$ echo ${ID}\nid`), /prints/],
    ['an early end', fenced('sh', 'exit 0') + fenced('sh', 'true'), /ended early/],
    ['a page without commands', 'Only text.', /no command to run/],
  ])('reports %s', async (_, text, message) => {
    await expect(runText(text)).rejects.toThrow(message)
  })

  test('reports a command that does not end', async () => {
    const text = fenced('sh', 'tail -f /dev/null')
    await expect(runText(text, { timeoutMs: 1_000 })).rejects.toThrow(/ended early/)
  })

  test('kills what still runs in the background', async () => {
    const [result] = await runText(fenced('sh', 'tail -f /dev/null & echo $!'))
    const state = () => readFile(`/proc/${result?.output.trim()}/stat`, 'utf8').catch(() => 'gone')
    // An orphan that nobody waits for stays as a zombie.
    await expect.poll(state).toMatch(/^gone|\) Z /)
  })

  test('waits for what a background command prints, and goes on while it runs', async () => {
    const text = `<!-- background -->\n\n${fenced('console', `$ sh -c 'sleep 0.2; echo up ${ID}; cat way'\nup ${OTHER}`)}`
    const [first, , last] = await runText(
      `<!-- run\nmkfifo way\n-->\n\n${text}${fenced('console', `$ echo ${OTHER} > way; echo ${OTHER}\n${OTHER}`)}`,
    )
    expect(first?.output).toBe('')
    expect(last?.output).toBe(`${ID}\n`)
  })

  test('uses the ids of this run in later commands', async () => {
    await writeFile(join(home, 'id.txt'), `${OTHER} at 2027-01-01T00:00:00.000Z\n`)
    await runText(
      fenced('console', `$ cat id.txt\n${ID} at 2026-11-21T22:07:43.444Z\n$ grep -o ${ID} id.txt\n${ID}`),
    )
  })

  test('is updated with the actual output where it differs', async () => {
    const text = (first: string, second: string) =>
      `${fenced('console', `$ echo https://example.com\n${first}\n$ echo same\nsame`)}\n1. list\n\n   \`\`\`console\n   $ seq 2\n   ${second}\n   \`\`\`\n`
    await runText(text('old', 'old'), { update: true })
    expect(await readFile(page(), 'utf8')).toBe(text('https://example.com', '1\n   2'))
  })

  test('gives a step an empty standard input', async () => {
    const results = await runText(fenced('console', '$ cat') + fenced('console', '$ echo next\nnext'))
    expect(results).toHaveLength(2)
  })

  test('must not show output before a command', () => {
    expect(() => readGuide(fenced('console', 'output'))).toThrow(/line 2/)
  })
})

const [AT, LATER] = ['2026-11-21T22:07:43.444Z', '2026-11-21T22:07:44.444Z']

test.each([
  ['a …\n', 'a b c\n', true],
  ['a …\n', 'a b\nc\n', false],
  ['…\nend', '1\n2\nend\n', true],
  ['…\nend', 'end', true],
  ['a.c', 'abc', false],
  ['', '', true],
  [`a  ${ID} b`, `a ${OTHER}  b`, true],
  ['at 2026-11-21T22:07:43.444Z', 'at 2027-01-01T00:00:00.000Z', true],
  ['5m', '6m', false],
  [`${AT} a\n${AT} b`, `${AT} b\n${AT} a`, true],
  [`${AT} a\n${LATER} b`, `${AT} b\n${LATER} a`, false],
])('%j shows %j: %s', (shown, actual, is) => {
  expect(isAsShown(shown, actual)).toBe(is)
})
