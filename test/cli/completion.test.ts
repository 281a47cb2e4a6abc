import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { describeProgram } from '../../src/cli/frame/describe.ts'
import { VERBS } from '../../src/cli/verbs.ts'
import { newHome, runCli } from './support.ts'

let home: string
let env: Record<string, string>
const scripts: Record<string, string> = {}

beforeAll(async () => {
  const made = await newHome()
  home = made.home
  env = { ...made.env, MAYFLY_SERVER: 'http://127.0.0.1:1' }
  for (const shell of ['bash', 'zsh', 'fish']) {
    const ended = await runCli(['completion', shell], { env })
    expect([ended.code, ended.stderr]).toEqual([0, ''])
    scripts[shell] = join(home, `completion.${shell}`)
    await writeFile(scripts[shell], ended.stdout)
  }
})

/** What each shell offers for the last word. */
const CASES: readonly (readonly [line: string, offered: readonly string[], not: readonly string[]])[] = [
  ['mayfly ', ['get', 'agent', 'completion', 'run'], ['sign', 'create']],
  ['mayfly ag', ['agent'], ['get']],
  ['mayfly agent ', ['create', 'ls', 'show', 'rm'], ['get']],
  ['mayfly agent create --', ['--scope', '--write', '--json', '--data-dir'], ['--force']],
  ['mayfly backend rm --fo', ['--force'], []],
  ['mayfly tokens ls --status ', ['active', 'expired', 'revoked'], ['ls']],
  ['mayfly completion ', ['bash', 'zsh', 'fish'], []],
  ['mayfly --server agent agent r', ['rm'], ['run']],
  ['mayfly agent --json r', ['rm'], ['run']],
  ['mayfly server --lis', ['--listen'], ['--server']],
]

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

  test.each(CASES)('%j', (line, offered, not) => {
    const words = offers(line)
    expect(words).toEqual(expect.arrayContaining([...offered]))
    for (const word of not) expect(words).not.toContain(word)
  })

  test('after the value of an option comes nothing of ours: readline completes files', () => {
    expect(offers('mayfly agent create --write ')).toEqual([])
    expect(offers('mayfly run -- ')).toEqual([])
    expect(run('bash', ['--norc', '-c', `source ${scripts['bash']}; complete -p mayfly`])).toContain(
      '-o default',
    )
  })

  test('--name=value', () => {
    const words = `COMP_WORDS=(mayfly tokens ls --status = act); COMP_CWORD=5; _mayfly; echo "\${COMPREPLY[*]}"`
    expect(run('bash', ['--norc', '-c', `source ${scripts['bash']}; ${words}`])).toBe('active\n')
  })
})

describe('fish', () => {
  test.each(CASES)('%j', (line, offered, not) => {
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

describe('zsh', () => {
  test.each([
    ['mayfly completion zs', '*zsh *'],
    ['mayfly agent cr', '*create *'],
    ['mayfly --server agent agent sho', '*show *'],
    ['mayfly tokens ls --stat', '*--status*'],
    ['mayfly tokens ls --status rev', '*revoked*'],
    ['mayfly agent ', '*create*delete an agent*'],
  ])('%j', (line, pattern) => {
    expect(run('zsh', ['-f', '-c', TYPE, '-', scripts['zsh'] ?? '', line, pattern])).not.toBe('')
  })
})

test('every verb that is not hidden is in every script', async () => {
  const program = await describeProgram(VERBS)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await runCli(['completion', shell], { env })
    for (const command of program.createHelp().visibleCommands(program))
      if (command.name() !== 'help') expect(stdout, shell).toContain(command.name())
  }
})

test('another shell, or none', async () => {
  expect(await runCli(['completion', 'tcsh'], { env })).toMatchObject({ code: 2, stdout: '' })
  expect(await runCli(['completion'], { env })).toMatchObject({ code: 2, stdout: '' })
  expect(JSON.parse((await runCli(['completion', 'bash', '--json'], { env })).stdout)).toMatchObject({
    shell: 'bash',
  })
})
