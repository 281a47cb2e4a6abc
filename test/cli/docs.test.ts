import { beforeAll, describe, expect, test } from 'vitest'
import { leaves, renderCliPage } from '../../scripts/docs-cli.ts'
import { findVerb } from '../../src/cli/frame/find-verb.ts'
import { optionRows } from '../../src/cli/frame/help.ts'
import { parseVerb } from '../../src/cli/frame/parse.ts'
import { VERBS } from '../../src/cli/verbs.ts'
import { newHome, runCli } from './support.ts'

/** Every verb with its words. */
const ALL = await Promise.all(
  VERBS.flatMap(leaves).map(async ([words, entry]) => [words, await entry.load(), entry] as const),
)

/** They run something, and print nothing of their own. */
const SILENT = ['server', 'run-guard', 'run-proxy', 'backend setup-sql']

let env: Record<string, string>
beforeAll(async () => {
  env = (await newHome()).env
})

describe.each(ALL)('%s', (words, verb, { summary }) => {
  test('is described: in sentences, with examples, every option and argument', () => {
    expect(verb.description).toMatch(/^[A-Z].*[.]$/s)
    expect(summary).toMatch(/^[a-z].*[^.]$/s)
    expect(verb.examples.length).toBeGreaterThan(0)
    for (const { about } of verb.examples) expect(about).not.toMatch(/^[A-Z].*\.$|^$/)
    for (const [flags, description] of optionRows(verb.options))
      expect([flags, description.trim()]).not.toContain('')
    for (const { name, description } of verb.arguments ?? [])
      expect([name, description.trim()]).not.toContain('')
  })

  test('says what --json prints', async () => {
    if (SILENT.includes(words)) return
    const shape = typeof verb.json === 'function' ? await verb.json() : verb.json
    expect(shape).toBeTruthy()
  })

  test('each example is a command line that it takes', async () => {
    for (const { command: line } of verb.examples) {
      const found = commandsIn(line)
      expect(found.length, line).toBeGreaterThan(0)
      for (const argv of found) {
        const meant = await findVerb(argv, VERBS)
        if (meant.what !== 'verb') throw new Error(`${line}: no verb`)
        const target = await meant.entry.load()
        if (target.passThrough !== 'all') await parseVerb(meant.words, target, meant.argv)
      }
    }
  })

  test('--help names every exit code that it has', async () => {
    const { stdout } = await runCli([...words.split(' '), '--help'], { env })
    const named = /Exit codes: ([\s\S]*)\.\s*$/.exec(stdout)?.[1] ?? ''
    expect([...named.matchAll(/(?:^|,\s)(\d)\s/g)].map(([, code]) => Number(code))).toEqual([
      ...[0, 1, 2],
      ...(verb.exits ?? []),
    ])
  })

  test('wrong usage is JSON with --json', async () => {
    if (verb.passThrough !== undefined || verb.globals === false) return
    const { code, stdout, stderr } = await runCli([...words.split(' '), '--json', '--no-such-option'], {
      env,
    })
    expect([code, stdout]).toEqual([2, ''])
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'usage', hint: expect.any(String) })
  })
})

test('the page has every command, and is what the commands say', async () => {
  const page = await renderCliPage()
  for (const [words, verb] of ALL) {
    expect(page).toContain(`\n### mayfly ${words}\n\n${verb.description}\n`)
    for (const { command } of verb.examples) expect(page).toContain(`\n    ${command}\n`)
    for (const [flags] of optionRows(verb.options))
      expect(page).toContain(`| \`${flags.replaceAll('|', '\\|')}\``)
  }
})

/** Files of other programs have them, and no new version may forget one. */
const WRITTEN = [
  'aws credential-process',
  'gcp-credential',
  'kubectl-credential',
  'npm-token',
  'api-key',
  'docker-credential',
  'terraform-credentials',
  'git-credential',
]

test.each(WRITTEN)('%s is a hidden name of a helper', async (words) => {
  const found = await findVerb(words.split(' '), VERBS)
  if (found.what !== 'verb') throw new Error('no verb')
  expect(found.entry.hidden).toBe(true)
  const helper = await findVerb(String(found.entry.aliasOf).split(' '), VERBS)
  if (helper.what !== 'verb') throw new Error('no helper')
  expect(await found.entry.load()).toBe(await helper.entry.load())
})

/** The command lines of ours in a line of shell, as words. */
function commandsIn(line: string): string[][] {
  return [...line.matchAll(/(?:^|[$<]\(|\| |&& |"\/usr\/bin\/)mayfly /g)].map((match) => {
    const start = match.index + match[0].length
    const isQuoted = line.slice(0, start).split('"').length % 2 === 0
    return wordsOf(line.slice(start), isQuoted)
  })
}

/** Up to what ends a command in the shell. */
function wordsOf(text: string, isQuoted: boolean): string[] {
  const words: string[] = []
  let word = ''
  let quote = ''
  for (const char of text) {
    if (quote !== '') {
      if (char === quote) quote = ''
      else word += char
    } else if (char === '"' && isQuoted) break
    else if (char === '"' || char === "'") quote = char
    else if (')|;&<>'.includes(char)) break
    else if (char !== ' ') word += char
    else if (word !== '') {
      words.push(word)
      word = ''
    }
  }
  return word === '' ? words : [...words, word]
}
