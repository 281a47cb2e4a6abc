import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CliError } from './failure.ts'
import { choice, flag, many, off, text } from './options.ts'
import { parseVerb } from './parse.ts'
import { type AnyVerb, defineVerb } from './verb.ts'

const rest = { description: 'd', examples: { 'mayfly x': 'a' }, run: async () => {} }
const VERBS: Record<string, AnyVerb> = {
  plain: defineVerb({
    ...rest,
    arguments: [{ name: '<backend>', description: 'b' }],
    options: {
      ttl: text('<duration>', 't'),
      scope: many('<scope>', 's'),
      output: text('<form>', 'o', { short: 'o', default: 'secret' }),
      dryRun: flag('d'),
    },
  }),
  several: defineVerb({
    ...rest,
    admin: true,
    arguments: [{ name: '[ids...]', description: 'i' }],
    options: { all: flag('a'), noCheck: off('c'), kind: choice('<kind>', 'k', ['a', 'b']) },
  }),
  through: defineVerb({
    ...rest,
    passThrough: 'options',
    arguments: [
      { name: '<command>', description: 'c' },
      { name: '[args...]', description: 'a' },
    ],
    options: { backend: many('<name>', 'b', { short: 'b' }) },
  }),
  bare: defineVerb({ ...rest, globals: false }),
  optional: defineVerb({
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

/** The verb with an `unknown` pass-through, whose own options are taken out of the line. */
const HANDS_ON = defineVerb({
  ...rest,
  passThrough: 'unknown',
  arguments: [
    { name: '<type>', description: 't' },
    { name: '[flags...]', description: 'f' },
  ],
  options: { rate: text('<rate>', 'r'), noRate: off('n'), config: text('[file]', 'c') },
})

async function outcome(verb: AnyVerb, argv: readonly string[]) {
  return parseVerb(['the', 'verb'], verb, argv).catch((error: unknown) => error)
}

describe.each(Object.entries({ ...VERBS, 'hands on': HANDS_ON }))(
  'any line is read or refused: %s',
  (_, verb) => {
    test('with its arguments counted, its choices kept and one line for a mistake', async () => {
      let read = 0
      await fc.assert(
        fc.asyncProperty(fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }), async (argv) => {
          const found = await outcome(verb, argv)
          if (found instanceof CliError) {
            expect(found).toMatchObject({ exitCode: 2, hint: 'Run `mayfly the verb --help` for usage.' })
            expect(found.message).toMatch(/^[^\n]+\.$/)
            return
          }
          expect(found instanceof Error ? found : undefined).toBeUndefined()
          if (found === 'help') {
            expect(argv.some((word) => ['-h', '--help'].includes(word) || /^-[^-]/.test(word))).toBe(true)
            return
          }
          read += 1
          const { args, options } = found as { args: unknown[]; options: Record<string, unknown> }
          expect(args.length).toBe(verb.arguments?.length ?? 0)
          for (const word of args.flat()) expect([undefined, ...argv]).toContain(word)
          if (options['kind'] !== undefined) expect(['a', 'b']).toContain(options['kind'])
          expect(Object.getPrototypeOf(options)).toBe(Object.prototype)
        }),
        { numRuns: 1_500 },
      )
      expect(read).toBeGreaterThan(30)
    })
  },
)

test.each<[string, string[], object]>([
  [
    'plain',
    ['demo', '--ttl', '5m', '--scope=a', '--scope', 'b', '-o', 'json', '--server', 'http://x', '--json'],
    {
      globals: { keychain: true, server: 'http://x', json: true },
      options: { ttl: '5m', scope: ['a', 'b'], output: 'json' },
      args: ['demo'],
    },
  ],
  ['plain', ['x', '-ojson', '--ttl='], { options: { output: 'json', ttl: '' }, args: ['x'] }],
  [
    'plain',
    ['--ttl', '-5m', '--', '--dry-run'],
    { options: { ttl: '-5m', output: 'secret' }, args: ['--dry-run'] },
  ],
  [
    'several',
    ['--all', '--kind', 'a', '--no-keychain', '--data-dir', '/x'],
    {
      globals: { keychain: false, dataDir: '/x' },
      options: { all: true, check: true, kind: 'a' },
      args: [[]],
    },
  ],
  ['several', ['one', 'two', '--no-check'], { options: { check: false }, args: [['one', 'two']] }],
  [
    'through',
    ['-b', 'pg', 'psql', '-c', 'select 1', '--json'],
    {
      globals: { keychain: true },
      options: { backend: ['pg'] },
      args: ['psql', ['-c', 'select 1', '--json']],
    },
  ],
  [
    'through',
    ['--backend=pg', '--', 'psql', '--help'],
    { options: { backend: ['pg'] }, args: ['psql', ['--help']] },
  ],
  ['optional', [], { globals: { keychain: true }, options: {}, args: [undefined] }],
  ['bare', [], { globals: {}, options: {}, args: [] }],
])('reads %s %j', async (name, argv, parsed) => {
  expect(await outcome(VERBS[name] as AnyVerb, argv)).toMatchObject(parsed)
})

test.each<[string[], object]>([
  [
    ['pg', 'name', '--host', 'h', '--rate', '1/h', '--port=5', '--json', '--on'],
    {
      globals: { json: true },
      options: { rate: '1/h' },
      args: ['pg', ['name', '--host', 'h', '--port=5', '--on']],
    },
  ],
  [['pg', '--no-rate'], { options: { rate: false }, args: ['pg', []] }],
  [['pg', '--config'], { options: { config: true } }],
  [['pg', '--config', '--on'], { options: { config: true }, args: ['pg', ['--on']] }],
  [['--config', 'f', 'pg'], { options: { config: 'f' }, args: ['pg', []] }],
  [['pg', '-x', '--', '--rate'], { args: ['pg', ['-x', '--', '--rate']] }],
])('hands unknown options on: %j', async (argv, parsed) => {
  expect(await outcome(HANDS_ON, argv)).toMatchObject(parsed)
})

test.each<[string, string[], RegExp]>([
  ['plain', [], /^The argument "backend" is missing\.$/],
  ['plain', ['a', 'b'], /^Too many arguments: 2 instead of 1\.$/],
  ['plain', ['a', '--tlt', '5m'], /^Unknown option "--tlt" \(did you mean "--ttl"\?\)\.$/],
  ['plain', ['a', '--tlt=hunter2'], /^Unknown option "--tlt" \(did you mean "--ttl"\?\)\.$/],
  ['plain', ['a', '--ttl'], /^--ttl needs a value\.$/],
  ['plain', ['a', '--dry-run=1'], /^--dry-run takes no value\.$/],
  ['several', ['--kind', 'c'], /Allowed choices are a, b\.$/],
  ['optional', ['c'], /Allowed choices are bash, zsh\.$/],
  ['bare', ['--json'], /Unknown option/],
])('refuses %s %j', async (name, argv, message) => {
  const error = await outcome(VERBS[name] as AnyVerb, argv)
  expect(error).toBeInstanceOf(CliError)
  expect(error).toMatchObject({ exitCode: 2, hint: 'Run `mayfly the verb --help` for usage.' })
  expect((error as CliError).message).toMatch(message)
})
