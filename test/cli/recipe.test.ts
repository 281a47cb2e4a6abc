import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOpenAi } from '../support/fakes/openai.ts'
import { newHome, runCli, startWorld } from './support.ts'

const OPENAI = new URL('../../src/backends/http/recipes/openai.yaml', import.meta.url)

let home: string
let env: Record<string, string>
let recipe: string
let fake: Awaited<ReturnType<typeof startOpenAi>>
beforeAll(async () => {
  const made = await newHome()
  home = made.home
  env = made.env
  fake = await startOpenAi(['proj_abc'])
  recipe = (await readFile(OPENAI, 'utf8')).replace('type: openai', 'type: acme')
  await writeFile(join(home, 'acme.yaml'), recipe)
  await writeFile(join(home, 'key'), fake.adminKey)
})
afterAll(() => fake.api.close())

const check = (...argv: string[]) => runCli(['recipe', 'check', ...argv], { env, cwd: home })

describe('recipe check', () => {
  test('a sound recipe: what it makes', async () => {
    const ended = await check('acme.yaml')
    expect(ended).toMatchObject({ code: 0, stderr: 'acme.yaml: no faults.\n' })
    expect(ended.stdout).toMatch(/^kind: +acme$/m)
    expect(ended.stdout).toContain('--admin-key-file <path>')
  })

  test('faults, each with its line', async () => {
    const faulty = recipe
      .replace('POST /v1', 'POST v1')
      .replace('  help:', '  halp:')
      .replace('"{admin_key}"', '{}')
    await writeFile(join(home, 'faulty.yaml'), faulty)
    const lineOf = (text: string) => faulty.slice(0, faulty.indexOf(text)).split('\n').length
    const { code, stderr } = await check('faulty.yaml')
    expect(code).toBe(1)
    expect(stderr).toContain(
      `faulty.yaml:${lineOf('POST v1')}:16: issue.requests.0.request must be a method and a path`,
    )
    expect(stderr).toContain(`faulty.yaml:${lineOf('halp:')}:3: scopes.halp is not known here`)
    expect(stderr).toContain(`faulty.yaml:${lineOf('bearer:')}:11: auth.bearer must be string`)
  })

  test('a variable that there is not, and text that is not YAML', async () => {
    await writeFile(join(home, 'a.yaml'), recipe.replace('"{ttl_seconds}"', '"{ttl}"'))
    expect((await check('a.yaml')).stderr).toMatch(/a\.yaml:\d+:\d+: .*there is no variable \{ttl\} here/)
    await writeFile(join(home, 'b.yaml'), 'type: [\n')
    expect((await check('b.yaml')).stderr).toMatch(/b\.yaml:\d+:\d+: not valid YAML/)
    expect((await check('none.yaml')).stderr).toContain('does not exist')
  })

  test('the type of a built-in kind is taken', async () => {
    await writeFile(join(home, 'c.yaml'), recipe.replace('type: acme', 'type: postgres'))
    expect((await check('c.yaml')).stderr).toMatch(/c\.yaml:2:7: type: there is a kind "postgres" already/)
  })

  test('with a configuration it tries the login, and says what is missing', async () => {
    const flags = ['--base-url', fake.api.url, '--local', '--projects', 'proj_abc']
    const good = await check('acme.yaml', '--admin-key-file', 'key', ...flags)
    expect(good).toMatchObject({ code: 0, stderr: 'acme.yaml: no faults. The upstream accepts the login.\n' })
    await writeFile(join(home, 'wrong'), 'sk-admin-wrong')
    const bad = await check('acme.yaml', '--admin-key-file', 'wrong', ...flags)
    expect(bad.code).toBe(1)
    expect(bad.stderr).toContain('refused the request (status 401)')
    expect((await check('acme.yaml', '--local')).stderr).toContain('"admin_key" is required')
    expect((await check('acme.yaml', '--json', '--admin-key-file', 'key', ...flags)).stdout).toContain(
      '"tried": true',
    )
    expect(fake.accounts.size).toBe(0)
  })
})

test('a server has the kinds of recipes_dir, and issues through them', async () => {
  const recipes = join(home, 'recipes')
  await mkdir(recipes)
  await writeFile(join(recipes, 'acme.yaml'), recipe)
  await writeFile(join(recipes, 'README'), 'no recipe')
  const world = await startWorld({ yaml: `recipes_dir: ${recipes}\n` })
  try {
    const admin = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
    const run = (...argv: string[]) => runCli(argv, { env: admin, cwd: home })
    expect((await run('kind', 'ls')).stdout).toMatch(/^acme +OpenAI API +at once$/m)
    const flags = ['--admin-key-file', 'key', '--base-url', fake.api.url, '--local', '--projects', 'proj_abc']
    expect(await run('backend', 'add', 'acme', ...flags)).toMatchObject({ code: 0 })
    const agent = await world.app.newAgent({ scopes: ['acme:proj_abc'] })
    const got = await runCli(['get', 'acme'], { env: { ...world.env, MAYFLY_TOKEN: agent.token } })
    expect(got.stdout).toMatch(/^sk-svcacct-/)
    expect(fake.accounts.size).toBe(1)
  } finally {
    await world.close()
  }
})

test('a server leaves out a faulty recipe, names the line, and serves the others', async () => {
  const recipes = join(home, 'faulty')
  await mkdir(recipes)
  await writeFile(join(recipes, 'a.yaml'), recipe.replace('title: ', 'titel: '))
  await writeFile(join(recipes, 'b.yaml'), recipe.replace('type: acme', 'type: jwt'))
  await writeFile(join(recipes, 'c.yaml'), recipe)
  const world = await startWorld({ yaml: `recipes_dir: ${recipes}\n` })
  try {
    expect(world.app.logged()).toMatch(
      /a\.yaml:3:1","fault":"titel is not known here[\s\S]*b\.yaml:2:7","fault":"type: there is a kind \\"jwt\\" already/,
    )
    expect(world.app.core.backends.kinds.has('acme')).toBe(true)
  } finally {
    await world.close()
  }
  await expect(startWorld({ yaml: `recipes_dir: ${home}/none\n` })).rejects.toThrow(
    /recipes_dir: the directory .* does not exist/,
  )
})
