import {
  chmod,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_HOME } from '../../src/cli/frame/surroundings.ts'
import { newRunner, recordsOf } from './run-support.ts'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const YAML = 'credentials:\n  demo:\n    env: { TOKEN: token }\n'
/** kubectl would run the program. */
const HOSTILE = `${YAML}    files: { KUBECONFIG: "exec: { command: ./evil } # {{ttl}}" }\n`

let count = 0
async function project(yaml = YAML): Promise<string> {
  count += 1
  const cwd = join(world.home, `project-${count}`)
  await mkdir(cwd)
  await writeFile(join(cwd, '.mayfly.yaml'), yaml)
  return cwd
}

/** `mayfly run -- true`, and what the server issued for it. */
async function run(cwd: string, options: readonly string[] = [], env: Record<string, string> = {}) {
  const runner = await newRunner(world)
  const { code, stderr } = await runCli(['run', ...options, '--', 'true'], {
    cwd,
    env: { ...runner.env, ...env },
  })
  return { code, stderr, issued: (await recordsOf(world, runner.agent)).length }
}

const allow = (cwd: string, ...argv: string[]) => runCli(['allow', ...argv], { cwd, env: world.bareEnv })
const used = { code: 0, stderr: '', issued: 1 }
const NOT_ALLOWED = {
  code: 2,
  stderr:
    'mayfly: .mayfly.yaml is not allowed. Run `mayfly allow` to see what it asks for and allow it, or trust the directory with --trust-project.\n',
  issued: 0,
}
const CHANGED = {
  code: 2,
  stderr:
    'mayfly: .mayfly.yaml has changed since it was allowed. Run `mayfly allow` to see the difference and allow it.\n',
  issued: 0,
}

describe('mayfly run', () => {
  test('refuses a project file until it is allowed, named or found', async () => {
    const cwd = await project(HOSTILE)
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
    expect(await run(cwd, ['--config', '.mayfly.yaml'])).toEqual(NOT_ALLOWED)
    expect(await allow(cwd, '--yes')).toMatchObject({ code: 0, stdout: '' })
    expect(await run(cwd)).toEqual(used)
    expect(await run(cwd, ['--config', '.mayfly.yaml'])).toEqual(used)
  })

  test('warns of the name of version 0.1, and takes the same content for allowed when it is renamed', async () => {
    const cwd = await project(HOSTILE)
    await rename(join(cwd, '.mayfly.yaml'), join(cwd, 'mayfly.yaml'))
    expect((await allow(cwd, '--yes')).stderr).toContain('Run: mv mayfly.yaml .mayfly.yaml')
    const warned = await run(cwd)
    expect(warned).toMatchObject({ code: 0, issued: 1 })
    expect(warned.stderr).toContain('Run: mv mayfly.yaml .mayfly.yaml')
    await rename(join(cwd, 'mayfly.yaml'), join(cwd, '.mayfly.yaml'))
    expect(await run(cwd)).toEqual(used)
    await writeFile(join(cwd, '.mayfly.yaml'), `${HOSTILE}# more\n`)
    expect(await run(cwd)).toEqual(CHANGED)
    await writeFile(join(cwd, '.mayfly.yaml'), HOSTILE)
    expect((await allow(cwd, '--revoke')).code).toBe(0)
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
  })

  test('uses the file of the repository from a directory below, by the same rules', async () => {
    const root = await project()
    const cwd = join(root, 'deep/er')
    await mkdir(cwd, { recursive: true })
    expect(await run(cwd)).toMatchObject({
      code: 2,
      issued: 0,
      stderr: expect.stringContaining('No credentials requested'),
    })
    await mkdir(join(root, '.git'))
    const refused = {
      ...NOT_ALLOWED,
      stderr: NOT_ALLOWED.stderr.replace('.mayfly.yaml', '../../.mayfly.yaml'),
    }
    expect(await run(cwd)).toEqual({
      ...refused,
      stderr: refused.stderr.replace('`mayfly allow`', '`mayfly allow ../../.mayfly.yaml`'),
    })
    expect(await run(cwd, ['--trust-project'])).toEqual(used)
    expect((await allow(cwd, '--yes')).stderr).toMatch(/Allowed \.\.\/\.\.\/\.mayfly\.yaml\.\n$/)
    expect(await run(cwd)).toEqual(used)
    expect(await run(root)).toEqual(used)
    expect(await run(cwd, ['--no-config'])).toMatchObject({ code: 2, issued: 0 })
    await writeFile(join(root, '.mayfly.yaml'), HOSTILE)
    expect(await run(cwd)).toMatchObject({
      code: 2,
      issued: 0,
      stderr: expect.stringContaining('has changed'),
    })
  })

  test('refuses it again after a change, until it is allowed or as it was', async () => {
    const cwd = await project()
    await allow(cwd, '--yes')
    await writeFile(join(cwd, '.mayfly.yaml'), HOSTILE)
    expect(await run(cwd)).toEqual(CHANGED)
    await writeFile(join(cwd, '.mayfly.yaml'), YAML)
    expect(await run(cwd)).toEqual(used)
    await writeFile(join(cwd, '.mayfly.yaml'), HOSTILE)
    expect((await allow(cwd, '--yes')).stderr).toBe(
      '.mayfly.yaml has changed. It asks for:\n  demo\n    backend: demo\n    env TOKEN: token\n' +
        '+   file KUBECONFIG: KUBECONFIG with "exec: { command: ./evil } # {{ttl}}"\nAllowed .mayfly.yaml.\n',
    )
    expect(await run(cwd)).toEqual(used)
    await writeFile(join(cwd, '.mayfly.yaml'), YAML)
    expect(await run(cwd)).toEqual(CHANGED)
  })

  test('refuses the same file at another path, and takes a link for the file that it leads to', async () => {
    const cwd = await project()
    await allow(cwd, '--yes')
    await copyFile(join(cwd, '.mayfly.yaml'), join(cwd, 'copy.yaml'))
    await symlink('.mayfly.yaml', join(cwd, 'link.yaml'))
    const copy = await run(cwd, ['--config', 'copy.yaml'])
    expect(copy).toMatchObject({
      code: 2,
      issued: 0,
      stderr: expect.stringContaining('`mayfly allow copy.yaml`'),
    })
    expect(await run(cwd, ['--config', 'link.yaml'])).toEqual(used)
  })

  test('does not parse a file that is not allowed', async () => {
    expect(await run(await project('secret of another file\n'))).toEqual(NOT_ALLOWED)
  })

  test('uses it with --trust-project or MAYFLY_TRUST_PROJECT', async () => {
    const cwd = await project()
    expect(await run(cwd, ['--trust-project'])).toEqual(used)
    for (const value of ['1', 'true'])
      expect(await run(cwd, [], { MAYFLY_TRUST_PROJECT: value })).toEqual(used)
    for (const value of ['0', 'false', '', 'no'])
      expect(await run(cwd, [], { MAYFLY_TRUST_PROJECT: value })).toEqual(NOT_ALLOWED)
    // Trust is for this run.
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
  })

  test('refuses it after `allow --revoke`', async () => {
    const cwd = await project()
    await allow(cwd, '--yes')
    expect((await allow(cwd, '--revoke')).stderr).toBe('.mayfly.yaml is not allowed any more.\n')
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
    expect((await allow(cwd, '--revoke')).stderr).toBe('.mayfly.yaml was not allowed.\n')
  })

  test('refuses it if the record is damaged, or open to others', async () => {
    const cwd = await project()
    const before = new Set(await records())
    await allow(cwd, '--yes')
    const [record = ''] = (await records()).filter((name) => !before.has(name))
    const path = join(ALLOWED(), record)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(ALLOWED())).mode & 0o777).toBe(0o700)
    await chmod(path, 0o666)
    expect(await run(cwd)).toMatchObject({
      code: 1,
      issued: 0,
      stderr: expect.stringContaining('by other users'),
    })
    await chmod(path, 0o600)
    expect(await run(cwd)).toEqual(used)
    await writeFile(path, (await readFile(path, 'utf8')).slice(0, 100))
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
  })
})

const ALLOWED = () => join(world.home, 'config', 'mayfly', 'allowed')
const records = () => readdir(ALLOWED()).catch(() => [])

describe('mayfly allow', () => {
  test('shows what the file asks for, asks, and records a yes', async () => {
    const cwd = await project(HOSTILE)
    const file = `project-${count}/.mayfly.yaml`
    const no = await runTyping(['allow', file], world.bareEnv, [[`Allow ${file}? [y/N] `, 'n']])
    expect(no).toMatchObject({ code: 1, stdout: '' })
    expect(no.stderr).toContain(
      `${file} asks for:\ndemo\n  backend: demo\n  env TOKEN: token\n  file KUBECONFIG: KUBECONFIG with "exec: { command: ./evil } # {{ttl}}"\n`,
    )
    expect(no.stderr).toContain(`mayfly: ${file} is not allowed. Ignore it with`)
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
    const yes = await runTyping(['allow', file], world.bareEnv, [[`Allow ${file}? [y/N] `, 'y']])
    expect(yes).toMatchObject({ code: 0, stderr: expect.stringMatching(/Allowed .*\.\n$/) })
    expect(await run(cwd)).toEqual(used)
  })

  test('asks nothing and changes nothing if the file is already allowed', async () => {
    const cwd = await project()
    await allow(cwd, '--yes')
    expect(await allow(cwd)).toEqual({ code: 0, stdout: '', stderr: '.mayfly.yaml is already allowed.\n' })
  })

  test('refuses without a terminal and without --yes', async () => {
    const cwd = await project()
    const { code, stderr } = await allow(cwd)
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        'There is no terminal to ask: Allow .mayfly.yaml. Read what it asks for, then use --yes.',
      ),
    ])
    expect(await run(cwd)).toEqual(NOT_ALLOWED)
  })

  test('reports as JSON', async () => {
    const cwd = await project()
    const path = join(cwd, '.mayfly.yaml')
    expect(JSON.parse((await allow(cwd, '--yes', '--json')).stdout)).toEqual({ path, allowed: true })
    expect(JSON.parse((await allow(cwd, '--revoke', '--json')).stdout)).toEqual({ path, allowed: false })
  })

  test('takes back the permission of a file that is gone', async () => {
    const cwd = await project()
    await allow(cwd, '--yes')
    await rm(join(cwd, '.mayfly.yaml'))
    expect((await allow(cwd, '--revoke')).stderr).toBe('.mayfly.yaml is not allowed any more.\n')
  })

  test.each([
    ['is not there', undefined, 'mayfly: The file ".mayfly.yaml" does not exist.'],
    ['has a mistake', `${YAML}    ttls: 5m\n`, 'mayfly: .mayfly.yaml:4:5: "ttls" is not a field'],
  ])('refuses a file that %s', async (_, yaml, message) => {
    const cwd = await project(yaml)
    if (yaml === undefined) await rm(join(cwd, '.mayfly.yaml'))
    const { code, stderr } = await allow(cwd, '--yes')
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  test('says so if there is no home directory', async () => {
    const cwd = await project()
    const { code, stderr } = await runCli(['allow', '--yes'], { cwd, env: { HOME: NO_HOME } })
    expect(code).toBe(1)
    expect(stderr).toContain('mayfly: There is no home directory to remember this in. Set HOME, or trust')
  })

  test('shows no control character of the file', async () => {
    const cwd = await project(`${YAML}    files: { F: "\\e[2J\\u009b2J\\u202e{{token}}" }\n`)
    const { stderr } = await allow(cwd, '--yes')
    expect(stderr).toContain('file F: F with ')
    expect(stderr.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u)
  })
})
