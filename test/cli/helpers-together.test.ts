import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newRepository, runGit } from './git-support.ts'
import { newHome, runCli, spawnCli } from './support.ts'
import { startToolsWorld, type ToolsWorld } from './tools-support.ts'

const EIGHT = Array.from({ length: 8 }, (_, at) => at)

let world: ToolsWorld
let home: string
let env: Record<string, string>
beforeAll(async () => {
  world = await startToolsWorld()
})
afterAll(() => world.close())
beforeEach(async () => {
  const fresh = await newHome()
  home = fresh.home
  env = { ...fresh.env, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: world.agent.token }
})

/** Eight processes at one moment; all must succeed. */
async function together(argvOf: (at: number) => string[], cwd = home): Promise<string[]> {
  const ends = await Promise.all(EIGHT.map((at) => spawnCli(argvOf(at), { env, cwd }).ended))
  expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual(EIGHT.map(() => [0, '']))
  return ends.map(({ stdout }) => stdout)
}

describe('eight helpers at one moment share one credential', () => {
  const helper = () => ['npm-token', '--backend', 'demo', '--ttl', '7m']
  const issued = () => world.alive('demo')

  test('when there is none yet', async () => {
    const before = await issued()
    const tokens = await together(helper)
    expect(new Set(tokens).size).toBe(1)
    expect(await issued()).toHaveLength(before.length + 1)
  })

  test('when the cached one has been revoked', async () => {
    const first = (await runCli(helper(), { env })).stdout
    for (const id of await issued()) await world.app.admin('DELETE', `/api/v1/credentials/${id}`)
    const tokens = await together(helper)
    expect(new Set(tokens).size).toBe(1)
    expect(tokens).not.toContain(first)
    expect(await issued()).toHaveLength(1)
  })

  test('when the cached one is about to end', async () => {
    const short = ['npm-token', '--backend', 'demo', '--ttl', '2m']
    const first = await runCli(short, { env })
    expect(first.code).toBe(0)
    const before = await issued()
    // Both clocks: a command that is ahead of its server takes every credential for an old one.
    const ahead = 100_000
    world.app.advance(ahead)
    const ends = await Promise.all(EIGHT.map(() => runCli(short, { env, ahead })))
    world.app.advance(-ahead)
    expect(ends.map(({ code }) => code)).toEqual(EIGHT.map(() => 0))
    expect(new Set(ends.map(({ stdout }) => stdout)).size).toBe(1)
    expect(ends[0]?.stdout).not.toBe(first.stdout)
    expect(await issued()).toHaveLength(before.length + 1)
  })
})

describe('eight set-ups at one moment keep all entries', () => {
  const hosts = EIGHT.map((at) => `r${at}.example`)
  const setUp = (tool: string) =>
    together((at) => ['helper', tool, '--write', '--host', `r${at}.example`, '--backend', 'demo'])
  const known = async (tool: string) =>
    JSON.parse((await runCli(['helper', tool, '--list', '--json'], { env })).stdout)
      .map((row: { registry?: string; host?: string }) => row.registry ?? row.host)
      .sort()

  test('of docker', async () => {
    await setUp('docker')
    expect(await known('docker')).toEqual(hosts)
    const { credHelpers } = JSON.parse(await readFile(join(home, '.docker/config.json'), 'utf8'))
    expect(Object.keys(credHelpers).sort()).toEqual(hosts)
  })

  test('of terraform', async () => {
    await setUp('terraform')
    expect(await known('terraform')).toEqual(hosts)
    expect(await readFile(join(home, '.terraformrc'), 'utf8')).toBe('credentials_helper "mayfly" {}\n')
  })

  test('of git', async () => {
    const repository = await newRepository({ ...world, home, env })
    await together((at) => ['git', 'setup', '--host', `r${at}.example`, '--backend', 'demo'], repository)
    const listed = await runGit({ ...world, home, env }, repository, [
      'config',
      '--get-regexp',
      '^mayfly\\.https',
    ])
    expect(listed.match(/r\d\.example/g)?.sort()).toEqual(hosts)
  })

  test('also while others are undone', async () => {
    await mkdir(join(home, '.docker'))
    await runCli(['helper', 'terraform', '--write', '--host', 'r7.example', '--backend', 'demo'], { env })
    await together((at) =>
      at === 7
        ? ['helper', 'terraform', '--remove', '--host', 'r7.example']
        : ['helper', 'terraform', '--write', '--host', `r${at}.example`, '--backend', 'demo'],
    )
    expect(await known('terraform')).toEqual(hosts.slice(0, 7))
    expect(await readFile(join(home, '.terraformrc'), 'utf8')).toBe('credentials_helper "mayfly" {}\n')
  })
})
