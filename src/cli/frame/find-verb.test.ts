import { describe, expect, test } from 'vitest'
import { GROUPS, VERBS } from '../verbs.ts'
import { findVerb } from './find-verb.ts'
import { familyOverview, overview } from './help.ts'
import type { Entry } from './verb.ts'

const load = () => Promise.reject(new Error('not loaded here'))
const verbs: readonly Entry[] = [
  { name: 'get', summary: 'get one', load },
  { name: 'sign', summary: 'sign', hidden: true, load },
  {
    name: 'agent',
    summary: 'agents',
    verbs: [
      { name: 'create', summary: 'make one', load },
      { name: 'ls', summary: 'list them', load },
    ],
  },
]

test.each<[string[], string[], string[]]>([
  [['get', 'x'], ['get'], ['x']],
  [['--json', 'get', 'x'], ['get'], ['--json', 'x']],
  [['--server', 'get', 'get', '--ttl', '5m'], ['get'], ['--server', 'get', '--ttl', '5m']],
  [
    ['--server=x', 'agent', '--json', 'ls'],
    ['agent', 'ls'],
    ['--server=x', '--json'],
  ],
  [['agent', 'create', 'ls'], ['agent', 'create'], ['ls']],
  [['help', 'get'], ['get'], ['--help']],
  [['get', '--', '--help'], ['get'], ['--', '--help']],
  [['-h', 'get'], ['get'], ['-h']],
])('%j', async (argv, words, left) => {
  expect(await findVerb(argv, verbs)).toMatchObject({ what: 'verb', words, argv: left })
})

test.each<[string[], string]>([
  [[], 'overview'],
  [['--help'], 'overview'],
  [['help'], 'overview'],
  [['agent'], 'family'],
  [['agent', '--help'], 'family'],
  [['-V'], 'version'],
  [['--version'], 'version'],
])('%j is no verb yet', async (argv, what) => {
  expect(await findVerb(argv, verbs)).toMatchObject({ what })
})

test.each<[string[], string]>([
  [['gte'], '"gte" is not a command (did you mean "get"?).'],
  [['agent', 'creat'], '"creat" is not a command (did you mean "create"?).'],
  [['x\x1b[2Jy'], '"x\\u001b[2Jy" is not a command.'],
  [['version'], '"version" is not a command (did you mean "mayfly --version"?).'],
  [['--json', 'whoami'], '"whoami" is not a command (did you mean "mayfly status"?).'],
  [['--ttl', 'get'], '"--ttl" is not an option of mayfly itself.'],
  [['--server'], '--server needs a value.'],
])('%j is wrong usage', async (argv, message) => {
  await expect(findVerb(argv, verbs)).rejects.toMatchObject({ exitCode: 2, message })
})

describe('the overview', () => {
  test('names each verb once with its summary, but not what only tools call', () => {
    const text = overview([{ title: 'All', verbs }])
    expect(text).toMatch(/^Usage: mayfly /)
    expect(text).toContain('\n  get    get one\n')
    expect(text).not.toContain('sign')
    expect(familyOverview(verbs[2] as never)).toContain('\n  create  make one\n  ls      list them\n')
  })

  test('of the real verbs fits on a screen, with unique names and short summaries', () => {
    for (const line of overview(GROUPS).split('\n')) expect(line.length).toBeLessThanOrEqual(110)
    const names = VERBS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const { summary } of VERBS) expect(summary).toMatch(/^.{3,70}[^.]$/)
  })
})
