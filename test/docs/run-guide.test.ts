import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { installMayfly, isAsSaid, readGuide, runGuide } from './run-guide.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-guide-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`

async function runText(text: string, more: { timeoutMs?: number } = {}) {
  const path = join(home, 'guide.md')
  await writeFile(path, text)
  const env = { PATH: `${join(home, 'bin')}:${process.env['PATH']}`, HOME: home }
  return runGuide(path, { env, cwd: home, replace: [['https://example.com', 'http://127.0.0.1:1']], ...more })
}

describe('a guide', () => {
  test('is run in one shell, in order, with files, hidden lines and replaced texts', async () => {
    await installMayfly(join(home, 'bin'))
    const results = await runText(
      [
        'Text with `code`.\n',
        fenced('sh', 'mkdir -p sub && cd sub\nX=1\ncat <<END > here\n$X\nEND'),
        `<!-- file: made/config.yaml -->\n\n${fenced('yaml', "url: 'https://example.com'")}`,
        '<!-- run\nX=$((X + 1))\n-->\n\n',
        `<!-- not run: it would fail -->\n${fenced('sh', 'false')}`,
        fenced('json', '{}'),
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
      /guide\.md:1: .*\n.*end 1.*before\n$/s,
    ],
    ['a pipe that fails', fenced('sh', 'false | cat'), /end 1/],
    ['other output', fenced('console', '$ echo one\ntwo'), /says:\none\n.*says:\ntwo/s],
    ['more output', fenced('console', '$ seq 2\n1'), /says/],
    ['no output', fenced('console', '$ true\n1'), /says/],
    ['an early end', fenced('sh', 'exit 0') + fenced('sh', 'true'), /ended early/],
    ['nothing to run', 'Only text.', /nothing in it is run/],
  ])('%s is told', async (_, text, message) => {
    await expect(runText(text)).rejects.toThrow(message)
  })

  test('a command that does not end is told', async () => {
    const text = fenced('sh', 'tail -f /dev/null')
    await expect(runText(text, { timeoutMs: 1_000 })).rejects.toThrow(/it ended early/)
  })

  test('what is left in the background is ended', async () => {
    const [result] = await runText(fenced('sh', 'tail -f /dev/null & echo $!'))
    const state = () => readFile(`/proc/${result?.output.trim()}/stat`, 'utf8').catch(() => 'gone')
    // It takes a moment to die; where nobody fetches the end of an orphan it stays as a zombie.
    await expect.poll(state).toMatch(/^gone|\) Z /)
  })

  test('standard input of a step is empty, and not the rest of the guide', async () => {
    const results = await runText(fenced('console', '$ cat') + fenced('console', '$ echo next\nnext'))
    expect(results).toHaveLength(2)
  })

  test('output before any command is a mistake', () => {
    expect(() => readGuide(fenced('console', 'output'))).toThrow(/line 2/)
  })
})

test.each([
  ['a …\n', 'a b c\n', true],
  ['a …\n', 'a b\nc\n', false],
  ['…\nend', '1\n2\nend\n', true],
  ['…\nend', 'end', true],
  ['a.c', 'abc', false],
  ['', '', true],
])('%j is said of %j: %s', (said, actual, is) => {
  expect(isAsSaid(said, actual)).toBe(is)
})
