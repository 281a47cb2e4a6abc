import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { commandScript } from '../support/compile-cache.ts'
import { hasPrograms } from '../support/needed-programs.ts'
import { MAIN, newHome, runCli } from './support.ts'

let home: string
let env: Record<string, string>
beforeEach(async () => {
  const made = await newHome()
  home = made.home
  const bin = join(home, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'mayfly'), commandScript(MAIN))
  await chmod(join(bin, 'mayfly'), 0o755)
  env = { ...made.env, PATH: `${bin}:${made.env['PATH']}`, TERM: 'dumb' }
})
afterEach(() => rm(home, { recursive: true }))

const install = (shell: string, ...argv: string[]) =>
  runCli(['completion', 'install', ...argv], { env: { ...env, SHELL: `/usr/bin/${shell}` } })

/** What a new interactive shell of this user does. */
function inShell(program: string, args: readonly string[]): string {
  const ended = spawnSync(program, args, { env, cwd: home, encoding: 'utf8', timeout: 60_000 })
  if (ended.error !== undefined) throw ended.error
  return ended.stdout
}

test('bash completes in the next shell, and a second time changes nothing', async () => {
  await writeFile(join(home, '.bashrc'), 'MINE=1')
  const ended = await install('bash')
  expect([ended.code, ended.stderr]).toEqual([
    0,
    `The completion script is ${home}/data/mayfly/completion.bash. ${home}/.bashrc reads it. Start a new shell to use it.\n`,
  ])
  const rc = await readFile(join(home, '.bashrc'), 'utf8')
  expect(rc).toMatch(/^MINE=1\n# Completion for mayfly/)
  await install('bash')
  expect(await readFile(join(home, '.bashrc'), 'utf8')).toBe(rc)
  const line = 'COMP_WORDS=(mayfly ag); COMP_CWORD=1; _mayfly; echo "$MINE $COMPREPLY"'
  expect(inShell('bash', ['--noprofile', '-i', '-c', line])).toBe('1 agent\n')
})

test.skipIf(!hasPrograms('zsh'))('zsh completes in the next shell', async () => {
  expect((await install('bash', 'zsh')).code).toBe(0)
  expect(inShell('zsh', ['-i', '-c', 'print $_comps[mayfly]'])).toBe('_mayfly\n')
})

test.skipIf(!hasPrograms('fish'))('fish completes in the next shell', async () => {
  expect(JSON.parse((await install('fish', '--json')).stdout)).toEqual({
    shell: 'fish',
    script: `${home}/config/fish/completions/mayfly.fish`,
    read_by: null,
  })
  expect(inShell('fish', ['-c', "complete -C 'mayfly ag'"])).toMatch(/^agent\t/)
})

test('a shell without a script for it, or none', async () => {
  expect(await install('tcsh')).toMatchObject({ code: 2, stderr: expect.stringContaining('install bash') })
  expect(await runCli(['completion', 'install'], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('SHELL is not set'),
  })
  expect((await install('bash', 'tcsh')).code).toBe(2)
})
