import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseVerb } from './describe.ts'
import { CliError } from './failure.ts'
import { parsePlain } from './parse-plain.ts'
import { type AnyVerb, defineVerb } from './verb.ts'

const rest = { description: 'd', examples: [{ command: 'mayfly x', about: 'a' }], run: async () => {} }
const VERBS: Record<string, AnyVerb> = {
  plain: defineVerb<object, [string]>({
    ...rest,
    arguments: [{ name: '<backend>', description: 'b' }],
    options: [
      { flags: '--ttl <duration>', description: 't' },
      { flags: '--scope <scope>', description: 's', repeatable: true },
      { flags: '-o, --output <form>', description: 'o', default: 'secret' },
      { flags: '--dry-run', description: 'd' },
    ],
  }),
  several: defineVerb<object, [string[]]>({
    ...rest,
    admin: true,
    arguments: [{ name: '[ids...]', description: 'i' }],
    options: [
      { flags: '--all', description: 'a' },
      { flags: '--no-check', description: 'c' },
      { flags: '--kind <kind>', description: 'k', choices: ['a', 'b'] },
    ],
  }),
  through: defineVerb<object, [string, string[]]>({
    ...rest,
    passThrough: 'options',
    arguments: [
      { name: '<command>', description: 'c' },
      { name: '[args...]', description: 'a' },
    ],
    options: [{ flags: '-b, --backend <name>', description: 'b', repeatable: true }],
  }),
  bare: defineVerb({ ...rest, globals: false }),
  optional: defineVerb<object, [string?]>({
    ...rest,
    arguments: [{ name: '[shell]', description: 's', choices: ['bash', 'zsh'] }],
  }),
}

const WORDS = [
  'x',
  'demo',
  'bash',
  'a',
  'b',
  '',
  '-',
  '--',
  '-o',
  '-ojson',
  '--output',
  '--output=env',
  '--output=',
  '--ttl',
  '--ttl=5m',
  '--scope',
  '--scope=a:b',
  '--dry-run',
  '--dry-run=1',
  '--no-dry-run',
  '--all',
  '--al',
  '--check',
  '--no-check',
  '--kind',
  '--kind=a',
  '--kind=c',
  '-b',
  '--backend',
  '--json',
  '--server',
  '--server=https://x',
  '--no-keychain',
  '--keychain',
  '--data-dir',
  '-h',
  '--help',
  '-x',
  '-1',
  '--ca',
  '--profile',
  '\u00e4',
  'a b',
  '--__proto__',
  '--constructor=1',
]

describe.each(Object.entries(VERBS))(
  'what is read without commander is what commander reads: %s',
  (_, verb) => {
    test('for any line', async () => {
      let plain = 0
      await fc.assert(
        fc.asyncProperty(fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }), async (argv) => {
          const found = parsePlain(verb, argv)
          if (found === undefined) return
          plain += 1
          expect(await parseVerb(['x'], verb, argv)).toEqual(found)
        }),
        { numRuns: 1_500 },
      )
      expect(plain).toBeGreaterThan(30)
    })
  },
)

test.each<[string, string[]]>([
  [
    'plain',
    ['demo', '--ttl', '5m', '--scope=a', '--scope', 'b', '-o', 'json', '--server', 'http://x', '--json'],
  ],
  ['several', ['--all', '--kind', 'a', '--no-keychain', '--data-dir', '/x']],
  ['several', ['one', 'two', '--no-check']],
  ['through', ['-b', 'pg', 'psql', '-c', 'select 1', '--json']],
  ['through', ['--backend=pg', '--', 'psql', '--help']],
  ['optional', []],
  ['bare', []],
])('commander is not needed for %s %j', async (name, argv) => {
  const verb = VERBS[name]
  if (verb === undefined) throw new Error('no such verb')
  const found = parsePlain(verb, argv)
  expect(found).toBeDefined()
  expect(await parseVerb(['x'], verb, argv)).toEqual(found)
})

test.each<[string, string[], RegExp]>([
  ['plain', [], /missing required argument 'backend'/i],
  ['plain', ['a', 'b'], /too many arguments/i],
  ['plain', ['a', '--tlt', '5m'], /unknown option '--tlt' \(Did you mean --ttl\?\)/i],
  ['plain', ['a', '--ttl'], /argument missing/],
  ['several', ['--kind', 'c'], /Allowed choices are a, b/],
  ['bare', ['--json'], /unknown option/i],
])('mistakes are told on one line with the next step: %s %j', async (name, argv, message) => {
  const verb = VERBS[name]
  if (verb === undefined) throw new Error('no such verb')
  expect(parsePlain(verb, argv)).toBeUndefined()
  const error = await parseVerb(['the', 'verb'], verb, argv).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(CliError)
  expect(error).toMatchObject({ exitCode: 2, hint: 'Run `mayfly the verb --help` to see what there is.' })
  expect((error as CliError).message).toMatch(message)
  expect((error as CliError).message).not.toContain('\n')
})
