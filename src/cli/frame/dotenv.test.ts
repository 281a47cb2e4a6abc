import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { dotenvLine } from './dotenv.ts'

const directory = mkdtempSync(join(tmpdir(), 'mayfly-dotenv-'))
afterAll(() => rmSync(directory, { recursive: true }))

const TELL = `process.stdout.write(JSON.stringify(Object.entries(process.env).filter(([name]) => /^V\\d+$/.test(name))))`
const PYTHON = 'import dotenv, json, sys; print(json.dumps(list(dotenv.dotenv_values(sys.argv[1]).items())))'

/** In CI it must be there. */
const hasDotenv =
  process.env['CI'] !== undefined || spawnSync('python3', ['-c', 'import dotenv']).status === 0

/** What each program takes the values for. `OTHER` is set, so that a program that fills it in is seen. */
function readBy(lines: readonly string[]): Record<string, unknown> {
  const file = join(directory, 'values.env')
  writeFileSync(file, `${lines.join('\n')}\n`)
  const env = { PATH: process.env['PATH'] ?? '', OTHER: 'filled in' }
  const told = (program: string, ...argv: string[]) =>
    Object.fromEntries(JSON.parse(execFileSync(program, argv, { env, encoding: 'utf8' })))
  return {
    'node --env-file': told(process.execPath, `--env-file=${file}`, '-e', TELL),
    parseEnv: parseEnv(`${lines.join('\n')}\n`),
    ...(hasDotenv ? { 'python-dotenv': told('python3', '-c', PYTHON, file) } : {}),
    sh: told('/bin/sh', '-c', `set -a; . "$0"; exec "$1" -e "$2"`, file, process.execPath, TELL),
  }
}

function lineOf(name: string, value: string): string | undefined {
  try {
    return dotenvLine(name, value)
  } catch {
    return undefined
  }
}

if (!hasDotenv) test.skip('python-dotenv (not installed) reads each value as it is', () => {})

test('Node, python-dotenv and a shell read each value as it is', () => {
  const hostile = fc.string({
    unit: fc.constantFrom(
      ...'abn\'"`\\$ {}(OTHER)#=\n\t:-!%;&|<>*~é漢',
      '\u0024{OTHER}',
      '$(id)',
      '\\n',
      'export ',
    ),
    maxLength: 24,
  })
  fc.assert(
    fc.property(fc.array(hostile, { minLength: 40, maxLength: 80 }), (values) => {
      const lines = values.map((value, index) => lineOf(`V${index}`, value))
      const kept = Object.fromEntries(
        values.flatMap((value, index) => (lines[index] === undefined ? [] : [[`V${index}`, value]])),
      )
      const read = readBy(lines.filter((line) => line !== undefined))
      for (const [program, got] of Object.entries(read)) expect([program, got]).toEqual([program, kept])
    }),
    { numRuns: 12 },
  )
})

test.each([
  'ghs_16C7e42F292c6912E7710c838347Ae178B4a',
  'pa"ss',
  "pa'ss",
  'pa$s`w#rd',
  'a b\\c',
  '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE"}',
  'postgresql://u:p%24@db.example:5432/orders?sslmode=verify-full',
  '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
  '',
])('writes %j', (value) => {
  const read = readBy([dotenvLine('V0', value)])
  for (const [program, got] of Object.entries(read)) expect([program, got]).toEqual([program, { V0: value }])
})

test.each([
  'both \' and "',
  "' and $",
  "' and \\",
  'a\\\\b',
  'ends with \\',
  '\u0024{OTHER}',
  'a\r\nb',
  'a\0b',
])('refuses %j, which some of them would misread', (value) => {
  expect(() => dotenvLine('V0', value)).toThrow(
    expect.objectContaining({
      message: 'Programs that read dotenv files would misread the value of V0.',
      hint: 'Use `-o env` or `-o json`.',
    }),
  )
})
