import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newHome, runCli, startWorld, type World } from '../cli/support.ts'
import type { NewAgent } from '../support/app.ts'
import { startForge } from '../support/forge.ts'
import { type GitServer, newRepository } from '../support/git-server.ts'

/**
 * The real git against git-http-backend behind nginx. It authenticates as a self-hosted git server would: by our key
 * set, and by introspection for revoked tokens.
 */
const run = promisify(execFile)
let world: World
let server: GitServer
const homes: string[] = []
let count = 0

beforeAll(async () => {
  world = await startWorld({ scopes: ['forge:*'] })
  server = await startForge(world.app)
})
afterAll(async () => {
  await server.close()
  await world.close()
  for (const home of homes) await rm(home, { recursive: true, force: true })
})

/** A user with a home of their own who has run `git setup --global`. */
async function newUser(agent: NewAgent, ...more: string[]) {
  const { home, env: bare } = await newHome()
  homes.push(home)
  const env = {
    ...bare,
    MAYFLY_SERVER: world.url,
    MAYFLY_TOKEN: agent.token,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
  }
  const set = await runCli(
    ['git', 'setup', '--global', '--host', server.url, '--backend', 'forge', ...more],
    { env },
  )
  expect([set.code, set.stderr]).toEqual([0, ''])
  const git = (where: string, ...args: string[]) => run('git', ['-C', join(home, where), ...args], { env })
  return { home, env, git }
}

const SCOPES = ['--scope', 'read', '--scope', 'write']
const repository = async () => {
  count += 1
  const name = `project-${count}.git`
  return { name, path: await newRepository(server, name), url: `${server.url}/${name}` }
}
const issuesOf = async (agent: NewAgent) =>
  (await world.app.admin('GET', `/v1/admin/audit?agent=${agent.id}&action=credential.issued`)).body.length

// The tests mostly wait for processes of git, each with a user of its own.
describe.concurrent('git with our credential helper', () => {
  test('clones, fetches and pushes with one short-lived credential', async () => {
    const { url, path } = await repository()
    const agent = await world.app.newAgent({ scopes: ['forge:*'] })
    const user = await newUser(agent, ...SCOPES)
    await user.git('.', 'clone', '-q', url, 'work')
    await writeFile(join(user.home, 'work', 'file'), 'x'.repeat(100_000))
    await user.git('work', 'add', 'file')
    await user.git('work', 'commit', '-q', '-m', 'second')
    await user.git('work', 'push', '-q')
    await user.git('work', 'fetch', '-q')
    const pushed = await run('git', ['-C', path, 'log', '--format=%s|%an', 'main'], { env: user.env })
    expect(pushed.stdout).toBe(`second|${agent.name}\nfirst|first\n`)
    expect(await issuesOf(agent)).toBe(1)
    for (const file of ['.gitconfig', 'work/.git/config'])
      expect(await readFile(join(user.home, file), 'utf8')).not.toMatch(/eyJ|ckr_/)
    expect(await readdir(user.home)).not.toContain('.git-credentials')
  })

  test('cannot push with a credential for reading', async () => {
    const { url } = await repository()
    const user = await newUser(world.agent, '--scope', 'read')
    await user.git('.', 'clone', '-q', url, 'work')
    await user.git('work', 'commit', '-q', '--allow-empty', '-m', 'no')
    await expect(user.git('work', 'push', '-q')).rejects.toThrow(/403/)
  })

  test('a revoked credential is dropped before git gets it, and the next one works', async () => {
    const { url } = await repository()
    const agent = await world.app.newAgent({ scopes: ['forge:*'] })
    const user = await newUser(agent, ...SCOPES)
    await user.git('.', 'clone', '-q', url, 'work')
    const [held] = (await agent.client.get('/v1/active')).body
    expect((await agent.client.delete(`/v1/active/${held.id}`)).status).toBe(204)
    await user.git('work', 'fetch')
    expect(await issuesOf(agent)).toBe(2)
    expect((await agent.client.get('/v1/active')).body.map(({ id }: { id: string }) => id)).not.toContain(
      held.id,
    )
  })

  test('revokes what the git server refuses', async () => {
    const { url } = await repository()
    const agent = await world.app.newAgent({ scopes: ['forge:*'] })
    const user = await newUser(agent, ...SCOPES)
    await user.git('.', 'clone', '-q', url, 'work')
    const [held] = (await agent.client.get('/v1/active')).body
    // As git itself does after a 401.
    const { token } = await cached(user.home)
    const input = `protocol=http\nhost=${new URL(server.url).host}\nusername=x-access-token\npassword=${token}\n\n`
    const rejected = run('sh', ['-c', 'printf %s "$1" | git credential reject', 'sh', input], {
      env: user.env,
    })
    await rejected
    expect((await agent.client.get(`/api/v1/credentials/${held.id}`)).body.status).toBe('revoked')
  })

  test('requests nothing for another host', async () => {
    const agent = await world.app.newAgent({ scopes: ['forge:*'] })
    const user = await newUser(agent, ...SCOPES)
    const fill = run(
      'sh',
      ['-c', 'printf "protocol=https\\nhost=evil.example\\n\\n" | git credential fill'],
      {
        env: user.env,
      },
    )
    await expect(fill).rejects.toThrow(/could not read Username/)
    expect(await issuesOf(agent)).toBe(0)
  })

  test('a deleted agent gets one clear line and no prompt', async () => {
    const { url } = await repository()
    const agent = await world.app.newAgent({ scopes: ['forge:*'] })
    const user = await newUser(agent, ...SCOPES)
    await world.app.admin('DELETE', `/v1/admin/agents/${agent.name}`)
    const clone = user.git('.', 'clone', '-q', url, 'work')
    await expect(clone).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /^mayfly: .* MAYFLY_TOKEN is set .*Correct it, or unset it\.\n.*told us to quit\n$/,
      ),
    })
  })
})

describe('git without our credential helper', () => {
  test('is refused without a valid credential: none, an invented one, one of another issuer', async () => {
    const { url } = await repository()
    const { home, env: bare } = await newHome()
    homes.push(home)
    const env = { ...bare, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' }
    await world.app.newBackend({ name: 'elsewhere', config: { audience: 'forge' } })
    const other = await world.app.newAgent({ scopes: ['elsewhere:*'] })
    const { token } = (await other.client.post('/v1/credentials/elsewhere', {})).body
    for (const [user, password] of [
      ['', ''],
      ['x-access-token', 'made-up'],
      ['x-access-token', token],
      ['somebody', token],
    ] as const) {
      const at = new URL(url)
      at.username = user
      at.password = password
      await expect(run('git', ['clone', '-q', at.href, 'work'], { cwd: home, env })).rejects.toThrow(
        /Authentication failed|could not read Username/,
      )
    }
    expect(server.verified.at(-1)).toBe(401)
  })
})

async function cached(home: string): Promise<{ token: string }> {
  const directory = join(home, 'cache', 'mayfly')
  const files = await readdir(directory, { recursive: true, withFileTypes: true })
  for (const file of files.filter((one) => one.isFile())) {
    const text = await readFile(join(file.parentPath, file.name), 'utf8')
    const token = /"token": ?"(eyJ[^"]+)"/.exec(text)?.[1]
    if (token !== undefined) return { token }
  }
  throw new Error('nothing is cached')
}

describe('commits signed through the server', () => {
  test('reach the git server and verify there with the public key alone', async () => {
    const { url, path } = await repository()
    const user = await newUser(world.agent, ...SCOPES)
    await user.git('.', 'clone', '-q', url, 'work')
    await user.git('work', 'commit', '-q', '--allow-empty', '-S', '-m', 'signed')
    await user.git('work', 'push', '-q')

    const { home, env } = await newHome()
    homes.push(home)
    const gnupg = join(home, 'g')
    await mkdir(gnupg, { mode: 0o700 })
    const auditor = { PATH: env['PATH'], HOME: home, GNUPGHOME: gnupg, GIT_CONFIG_NOSYSTEM: '1' }
    const { body } = await world.app.admin('GET', '/v1/admin/keys')
    const key = body.find((one: { agent_id: string }) => one.agent_id === world.agent.id)
    await writeFile(join(home, 'key.asc'), key.public_key)
    await run('gpg', ['--batch', '--import', join(home, 'key.asc')], { env: auditor })
    const git = (...args: string[]) =>
      run('git', ['-c', 'safe.directory=*', '-C', path, ...args], { env: auditor })
    const verified = await git('verify-commit', 'main')
    expect(verified.stderr).toContain(
      `Good signature from "${world.agent.name} <${world.agent.signing_email}>"`,
    )
    await expect(git('verify-commit', 'main^')).rejects.toThrow()
    await run('gpgconf', ['--homedir', gnupg, '--kill', 'all'])
    expect(await readdir(gnupg)).not.toContain('secring.gpg')
    expect((await readdir(join(gnupg, 'private-keys-v1.d')).catch(() => [])).length).toBe(0)
  })
})
