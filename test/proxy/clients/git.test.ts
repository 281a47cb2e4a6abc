import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { usesOf } from '../../../src/backends/github/uses.ts'
import { LONG } from '../../support/long.ts'
import { type ClientWorld, startClientWorld } from '../support/client-world.ts'
import { gitHandler } from '../support/git-handler.ts'
import { memoryOf } from '../support/memory-of.ts'

const SECRET = 'ghs_0123456789abcdefghijABCDEFGHIJ012345'
const MB = 1024 * 1024
/** Of one repository, and of what is pushed to it. */
const SIZE = (LONG ? 1024 : 48) * MB
const PIECE = 16 * MB
/** What a proxy that kept a body in memory would need many times over. */
const MOST_MEMORY = 320 * MB
/** The helper that a user would write, for the way without settings of ours. */
const HELPER = '!f() { echo username=x-access-token; echo "password=$GITHUB_TOKEN"; }; f'

let world: ClientWorld
let server: string
const seen: string[] = []
const foreign: string[] = []
const refuse = (seen: string[]) => gitHandler('/nonexistent', 'nobody', seen)
beforeAll(async () => {
  server = await mkdtemp(join(tmpdir(), 'mf-git-upstream-'))
  fill(server)
  world = await startClientWorld(
    [
      {
        ...{ name: 'hub', type: 'github', token: SECRET },
        uses: usesOf(
          { app_id: '1', private_key: '', owner: 'acme', base_url: 'https://api.github.com', local: false },
          ['acme/web:contents:write', 'acme/docs:contents:read'],
        ).flatMap((use) => (use.name === 'git' ? [use] : [])),
        env: ({ token }) => ({
          ...{ GITHUB_TOKEN: token, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' },
          GIT_CONFIG_GLOBAL: join(server, 'settings'),
        }),
      },
    ],
    { 'github.com': gitHandler(server, SECRET, seen), 'elsewhere.example': refuse(foreign) },
  )
}, 600_000)
afterAll(async () => {
  await world?.close()
  await rm(server, { recursive: true, force: true })
})
beforeEach(() => {
  for (const list of [seen, foreign, world.misused]) list.length = 0
})

/** Random bytes are neither compressed nor compared, which would take minutes. */
const SETTINGS = `[user]
  name = agent
  email = agent@example.com
[core]
  compression = 0
  bigFileThreshold = 1m
[receive]
  unpackLimit = 1
[http]
  receivepack = true
`
const COMMIT_BYTES = `for i in $(seq ${SIZE / PIECE}); do head -c ${PIECE} /dev/urandom >$name-$i; done; git add .; git commit -qm "$name"`

/** Bare repositories: a large one, one that may only be read, and one of somebody else's. */
function fill(root: string): void {
  const script = `set -e; mkdir acme; git init -q -b main large; git init -q -b main small
    cd large; name=first; ${COMMIT_BYTES}; cd ../small; git commit -q --allow-empty -m first; cd ..
    git clone -q --bare large acme/web.git; git clone -q --bare small acme/docs.git
    cp -r acme/docs.git acme/other.git; rm -rf large small
    for one in acme/*; do cat settings >>$one/config; done`
  writeFileSync(join(root, 'settings'), SETTINGS)
  const env = { PATH: process.env['PATH'], GIT_CONFIG_GLOBAL: join(root, 'settings') }
  execFileSync('sh', ['-c', script], { cwd: root, env })
}

const tipOf = (repository: string) =>
  execFileSync('git', ['-C', join(server, repository), 'rev-parse', 'main'], { encoding: 'utf8' })

const WAYS = {
  'a base URL': (...args: string[]) => world.run(['git', ...args]),
  HTTPS_PROXY: (...args: string[]) => world.runForward(['git', '-c', `credential.helper=${HELPER}`, ...args]),
}

describe.each(Object.entries(WAYS))('git by %s', (way, git) => {
  const copy = `copy-${way.replaceAll(' ', '-')}`
  const URL = 'https://github.com/acme/web.git'

  it('clones and pushes a large repository with a placeholder, in little memory', async () => {
    const grown = await memoryOf(`git clone and push of ${SIZE / MB} MiB by ${way}`, async () => {
      expect(await git('clone', '-q', URL, copy)).toEqual({ code: 0, stdout: '', stderr: '' })
      expect((await git('-C', copy, 'rev-parse', 'HEAD')).stdout).toBe(tipOf('acme/web.git'))
      await world.run(['sh', '-c', `cd ${copy}; name=second; ${COMMIT_BYTES}`])
      expect(await git('-C', copy, 'push', '-q', 'origin', 'main')).toMatchObject({ code: 0 })
    })
    expect((await git('-C', copy, 'rev-parse', 'HEAD')).stdout).toBe(tipOf('acme/web.git'))
    expect(seen).toContain('POST /acme/web.git/git-receive-pack known')
    expect(seen.filter((line) => line.endsWith('wrong'))).toEqual([])
    expect(grown).toBeLessThan(MOST_MEMORY)
    expect(world.lines.map(({ path }) => path)).toContain('/acme/web.git/git-receive-pack')
  }, 900_000)

  it('is refused to push where it may only read', async () => {
    const docs = `${copy}-docs`
    expect(await git('clone', '-q', 'https://github.com/acme/docs.git', docs)).toMatchObject({ code: 0 })
    const before = tipOf('acme/docs.git')
    await git('-C', docs, 'commit', '-q', '--allow-empty', '-m', 'mine')
    const { code, stderr } = await git('-C', docs, 'push', 'origin', 'main')
    expect(code).not.toBe(0)
    expect(stderr).toContain('403')
    expect(tipOf('acme/docs.git')).toBe(before)
    expect(seen.filter((line) => line.includes('receive-pack'))).toEqual([])
  })

  it('is refused another repository, as the path is none of a rule', async () => {
    const { code, stderr } = await git('ls-remote', 'https://github.com/acme/other.git')
    expect(code).not.toBe(0)
    expect(stderr).toContain('403')
    expect(seen.filter((line) => line.endsWith(' known'))).toEqual([])
  })

  it('is refused another host, which is told', async () => {
    const login = Buffer.from(`x-access-token:${world.env['GITHUB_TOKEN']}`).toString('base64')
    const header = `http.extraHeader=Authorization: Basic ${login}`
    const { code } = await git('-c', header, 'ls-remote', 'https://elsewhere.example/acme/web.git')
    expect(code).not.toBe(0)
    expect(world.misused).toEqual(['hub'])
    expect(foreign).toEqual([])
  })
})

it('leads the forms of an address that would go by SSH to the base URL', async () => {
  for (const address of ['git@github.com:acme/docs.git', 'ssh://git@github.com/acme/docs.git']) {
    const { code, stdout } = await world.run(['git', 'ls-remote', address, 'main'])
    expect([code, stdout]).toEqual([0, `${tipOf('acme/docs.git').trim()}\trefs/heads/main\n`])
  }
})

it('leaves no secret in what git printed and wrote, and the search finds the placeholder', async () => {
  expect(await world.find(SECRET)).toEqual([])
  await world.run(['sh', '-c', 'env >environment'])
  expect(await world.find(world.env['GITHUB_TOKEN'] ?? '')).not.toEqual([])
})
