import { spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { VERBS } from '../../src/cli/verbs.ts'
import { commandScript } from '../support/compile-cache.ts'
import { hasPrograms } from '../support/needed-programs.ts'
import { MAIN, newHome, runCli } from './support.ts'

let home: string
let env: Record<string, string>
const scripts: Record<string, string> = {}

beforeAll(async () => {
  const made = await newHome()
  home = made.home
  const bin = join(home, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'mayfly'), commandScript(MAIN))
  await chmod(join(bin, 'mayfly'), 0o755)
  env = { ...made.env, PATH: `${bin}:${made.env['PATH']}`, MAYFLY_SERVER: 'http://127.0.0.1:1' }
  for (const shell of ['bash', 'zsh', 'fish']) {
    const ended = await runCli(['completion', shell], { env })
    expect([ended.code, ended.stderr]).toEqual([0, ''])
    scripts[shell] = join(home, `completion.${shell}`)
    await writeFile(scripts[shell], ended.stdout)
  }
})

/** What each shell offers for the last word. */
const CASES: readonly (readonly [line: string, offered: readonly string[], not: readonly string[]])[] = [
  [
    'mayfly ',
    ['get', 'agent', 'completion', 'run', 'credentials', 'kind'],
    ['sign', 'create', 'npm-token', 'aws'],
  ],
  ['mayfly ag', ['agent'], ['get']],
  ['mayfly agent ', ['create', 'ls', 'show', 'rm'], ['get']],
  ['mayfly agent create --', ['--scope', '--write', '--json', '--data-dir'], ['--force']],
  ['mayfly backend rm --fo', ['--force'], []],
  ['mayfly helper ', ['aws', 'docker', 'git'], ['npm-token']],
  ['mayfly completion ', ['install', 'bash', 'zsh', 'fish'], []],
  ['mayfly backend ', ['add', 'ls'], ['create']],
  ['mayfly credentials ls --status ', ['active', 'expired', 'revoked', 'all'], ['ls']],
  ['mayfly --server agent agent r', ['rm'], ['run']],
  ['mayfly agent --json r', ['rm'], ['run']],
  ['mayfly server --lis', ['--listen'], ['--server']],
  ['mayfly --ser', ['--server'], ['--data-dir']],
]

/** Those of the cases that each shell is asked itself; it asks `mayfly __complete`, as the first test does for all. */
const IN_SHELLS = CASES.filter(([line]) =>
  ['mayfly ', 'mayfly agent create --', 'mayfly credentials ls --status '].includes(line),
)

test.each(CASES)('%j', async (line, offered, not) => {
  const { stdout } = await runCli(['__complete', '--', ...line.split(' ').slice(1)], { env })
  const words = stdout.split('\n').map((one) => one.split('\t')[0])
  expect(words).toEqual(expect.arrayContaining([...offered]))
  for (const word of not) expect(words).not.toContain(word)
})

function run(program: string, args: readonly string[]): string {
  const ended = spawnSync(program, args, { env, cwd: home, encoding: 'utf8', timeout: 60_000 })
  if (ended.error !== undefined) throw ended.error
  expect([ended.status, ended.stderr]).toEqual([0, ''])
  return ended.stdout
}

const LINE = `
complete -p mayfly >/dev/null || exit 1
read -r -a COMP_WORDS <<<"$1"
case "$1" in *' ') COMP_WORDS+=('') ;; esac
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_mayfly
printf '%s\\n' "\${COMPREPLY[@]}"
`

describe('bash', () => {
  const offers = (line: string) =>
    run('bash', ['--norc', '-c', `source ${scripts['bash']}\n${LINE}`, '-', line])
      .split('\n')
      .filter((word) => word !== '')

  test.each(IN_SHELLS)('%j', (line, offered, not) => {
    const words = offers(line)
    expect(words).toEqual(expect.arrayContaining([...offered]))
    for (const word of not) expect(words).not.toContain(word)
  })

  test('offers nothing where a file may stand, so that readline completes it', () => {
    expect(offers('mayfly agent create --write ')).toEqual([])
    expect(offers('mayfly run -- ')).toEqual([])
    expect(run('bash', ['--norc', '-c', `source ${scripts['bash']}; complete -p mayfly`])).toContain(
      '-o default',
    )
  })

  test('--name=value', () => {
    const words = `COMP_WORDS=(mayfly credentials ls --status = act); COMP_CWORD=5; _mayfly; echo "\${COMPREPLY[*]}"`
    expect(run('bash', ['--norc', '-c', `source ${scripts['bash']}; ${words}`])).toBe('active\n')
  })
})

test('a value after `=` is completed with the option before it', async () => {
  const { stdout } = await runCli(['__complete', '--', 'credentials', 'ls', '--status=re'], { env })
  expect(stdout).toBe('--status=revoked\t\n')
})

test.each([
  ['bash splits an address at its colons', ['--server', 'http', ':', '//x', 'agent', 'cr'], 'create\t'],
  ['after the options of the verb', ['run', '--backend', 'pg', '--gr'], '--grace\t'],
  ['a path after an option that names a file', ['get', '--ca', ''], ':files\n'],
  ['a path after the command of `run`', ['run', '--backend', 'pg', 'psql', ''], ':files\n'],
])('%s', async (_, words, start) => {
  const { code, stdout } = await runCli(['__complete', '--', ...words], { env })
  expect([code, stdout.slice(0, start.length)]).toEqual([0, start])
})

test.each([
  ['an unknown verb', ['nonsense', '']],
  ['an unknown option before the verb', ['--nonsense', '']],
  ['a value that cannot be listed', ['get', '--ttl', '']],
])('offers nothing after %s', async (_, words) => {
  expect(await runCli(['__complete', '--', ...words], { env })).toEqual({ code: 0, stdout: '', stderr: '' })
})

describe.skipIf(!hasPrograms('fish'))('fish', () => {
  test.each(IN_SHELLS)('%j', (line, offered, not) => {
    const words = run('fish', [
      '--no-config',
      '-c',
      `source ${scripts['fish']}; complete -C ${JSON.stringify(line)}`,
    ])
      .split('\n')
      .map((one) => one.split('\t')[0])
    expect(words).toEqual(expect.arrayContaining([...offered]))
    for (const word of not) expect(words).not.toContain(word)
  })
})

/** Types the line and Tab into a real zsh on a terminal of its own; what stands there when the pattern has matched. */
const TYPE = `
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "autoload -U compinit; compinit -u -D; source $1; PS1='RE''ADY> '; LISTMAX=0"
zpty -r z before '*READY> *'
zpty -w -n z "$2"$'\\t'
zpty -r z after "$3"
print -r -- $after
zpty -d z
`

describe.skipIf(!hasPrograms('zsh'))('zsh', () => {
  test.each([
    ['mayfly --server agent agent sho', '*show *'],
    ['mayfly credentials ls --status rev', '*revoked*'],
    ['mayfly agent ', '*create*delete an agent*'],
  ])('%j', (line, pattern) => {
    expect(run('zsh', ['-f', '-c', TYPE, '-', scripts['zsh'] ?? '', line, pattern])).not.toBe('')
  })
})

test('every verb that is not hidden is offered', async () => {
  const { stdout } = await runCli(['__complete', '--', ''], { env })
  const offered = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t')[0])
  expect(offered).toEqual(VERBS.filter((entry) => !('hidden' in entry)).map(({ name }) => name))
})

test('another shell, or none', async () => {
  expect(await runCli(['completion', 'tcsh'], { env })).toMatchObject({ code: 2, stdout: '' })
  expect(await runCli(['completion'], { env })).toMatchObject({ code: 2, stdout: '' })
  expect(JSON.parse((await runCli(['completion', 'bash', '--json'], { env })).stdout)).toMatchObject({
    shell: 'bash',
  })
})
