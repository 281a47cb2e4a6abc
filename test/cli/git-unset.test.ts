import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { HOST, newRepository, runGit } from './git-support.ts'
import { runCli, startWorld, type World } from './support.ts'

const _run = promisify(execFile)
let world: World
let repository: string
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())
beforeEach(async () => {
  repository = await newRepository(world)
})

const git = (...args: string[]) => runGit(world, repository, args)
const cli = (...argv: string[]) => runCli(argv, { env: world.env, cwd: repository })

describe('git unset', () => {
  test('restores the previous settings and removes nothing else', async () => {
    await git('config', 'user.name', 'Ada')
    await git('config', 'commit.gpgsign', 'false')
    await git('config', 'core.editor', 'ed')
    const before = (await git('config', '--local', '--list')).split('\n').sort()
    await cli('git', 'setup', ...HOST)
    await cli('git', 'setup', '--host', 'other.example', '--backend', 'demo')
    expect(await git('config', 'user.name')).toBe(world.agent.name)
    const { code, stdout } = await cli('git', 'unset', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      scope: 'local',
      signing: true,
      hosts: ['https://git.example.com', 'https://other.example'],
    })
    expect((await git('config', '--local', '--list')).split('\n').sort()).toEqual(before)
  })

  test('reports that nothing was set up', async () => {
    const { code, stderr } = await cli('git', 'unset')
    expect(code).toBe(1)
    expect(stderr).toMatch(/not set up there/)
  })
})

describe('git status', () => {
  test('shows the signing identity and the servers, wherever they are configured', async () => {
    const none = await cli('git', 'status')
    expect(none.code).toBe(1)
    expect(none.stderr).toMatch(/not set up here.*mayfly git setup/)
    await cli('git', 'setup', ...HOST)
    const { code, stdout } = await cli('git', 'status')
    expect(code).toBe(0)
    expect(stdout).toContain(`${world.agent.name} <${world.agent.signing_email}>`)
    expect(stdout).toMatch(/https:\/\/git\.example\.com:? +credentials of demo/)
    const { signing, hosts } = JSON.parse((await cli('git', 'status', '--json')).stdout)
    expect(signing).toMatchObject({ key_id: world.agent.signing_key_id, scope: 'local' })
    expect(hosts).toEqual([{ url: 'https://git.example.com', backend: 'demo', scope: 'local' }])
  })

  test('reports that the signing program is gone', async () => {
    await cli('git', 'setup')
    await rm(await git('config', 'gpg.program'))
    const { code, stderr } = await cli('git', 'status')
    expect(code).toBe(1)
    expect(stderr).toMatch(/which does not exist\. Run `mayfly git setup` again/)
  })
})
