import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

const run = promisify(execFile)
let app: TestApp
let agent: NewAgent
let directory: string
let repository: string
let env: NodeJS.ProcessEnv

/** A repository whose verifier knows the key that the administrator gives out, and nothing else. */
beforeAll(async () => {
  app = await startApp()
  agent = await app.newAgent({ name: 'remote' })
  directory = await mkdtemp(join(tmpdir(), 'mf-'))
  repository = join(directory, 'repository')
  const home = join(directory, 'gpg')
  await mkdir(home, { mode: 0o700 })
  env = {
    PATH: process.env['PATH'],
    HOME: directory,
    GNUPGHOME: home,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: agent.name,
    GIT_AUTHOR_EMAIL: agent.signing_email,
    GIT_COMMITTER_NAME: agent.name,
    GIT_COMMITTER_EMAIL: agent.signing_email,
  }
  const keys = (await app.admin('GET', '/v1/admin/keys')).body as { agent_id: string; public_key: string }[]
  await writeFile(join(directory, 'key.asc'), keys.find((key) => key.agent_id === agent.id)?.public_key ?? '')
  await run('gpg', ['--batch', '--import', join(directory, 'key.asc')], { env })
  await run('git', ['init', '-q', '-b', 'main', repository], { env })
})
afterAll(async () => {
  await run('gpgconf', ['--homedir', join(directory, 'gpg'), '--kill', 'all']).catch(() => undefined)
  await app.close()
  await rm(directory, { recursive: true, force: true })
})

const git = async (...args: string[]) =>
  (await run('git', ['-C', repository, ...args], { env })).stdout.trim()

async function signatureOf(object: string, purpose: string): Promise<string> {
  const data = Buffer.from(object).toString('base64')
  const { status, body } = await agent.client.post('/v1/sign', { data, purpose })
  expect(status).toBe(200)
  return body.signature
}

async function write(type: string, object: string): Promise<string> {
  const file = join(directory, 'object')
  await writeFile(file, object)
  return git('hash-object', '-t', type, '-w', file)
}

/** As git puts it into the commit: behind the committer, continued by spaces. */
function withSignature(commit: string, signature: string): string {
  const header = `gpgsig ${signature.replaceAll('\r', '').trimEnd().replaceAll('\n', '\n ')}`
  return commit.replace('\n\n', `\n${header}\n\n`)
}

describe('git and gpg accept the signatures of POST /v1/sign', () => {
  test('a commit that git made, as git verify-commit sees it', async () => {
    const tree = await git('write-tree')
    const commit = `${await git('cat-file', 'commit', await git('commit-tree', '-m', 'Größe: ein Wort\n\nnoch eins', tree))}\n`
    const signed = await write('commit', withSignature(commit, await signatureOf(commit, 'git-commit')))
    const { stderr } = await run('git', ['-C', repository, 'verify-commit', signed], { env })
    expect(stderr).toContain(`Good signature from "remote <${agent.signing_email}>"`)
    expect(await git('log', '-1', '--format=%G?|%GK', signed)).toMatch(
      new RegExp(`^[GU]\\|${agent.signing_key_id}$`),
    )

    const forged = withSignature(commit.replace('Größe', 'Grösse'), await signatureOf(commit, 'git-commit'))
    const verify = run('git', ['-C', repository, 'verify-commit', await write('commit', forged)], { env })
    await expect(verify).rejects.toThrow(/BAD signature/)
  })

  test('a tag, as git verify-tag sees it', async () => {
    const tree = await git('write-tree')
    const commit = await git('commit-tree', '-m', 'm', tree)
    const tag = `object ${commit}\ntype commit\ntag v1\ntagger remote <${agent.signing_email}> 1760000000 +0000\n\nRelease\n`
    const signed = await write('tag', tag + (await signatureOf(tag, 'git-tag')).replaceAll('\r', ''))
    await git('update-ref', 'refs/tags/v1', signed)
    const { stderr } = await run('git', ['-C', repository, 'verify-tag', 'v1'], { env })
    expect(stderr).toContain('Good signature')
  })

  test('a merge of a signed tag, with the tag inside', async () => {
    const tree = await git('write-tree')
    const [one, two] = [await git('commit-tree', '-m', '1', tree), await git('commit-tree', '-m', '2', tree)]
    const tag = `object ${two}\ntype commit\ntag v2\ntagger remote <${agent.signing_email}> 1760000000 +0000\n\nRelease\n`
    const signed = await write('tag', tag + (await signatureOf(tag, 'git-tag')).replaceAll('\r', ''))
    await git('update-ref', 'refs/tags/v2', signed)
    await git('reset', '-q', '--hard', one)
    await git('merge', '-q', '--no-ff', '--allow-unrelated-histories', '-m', 'merge', 'v2')
    const merge = `${await git('cat-file', 'commit', 'HEAD')}\n`
    expect(merge).toContain('\nmergetag object ')
    const id = await write('commit', withSignature(merge, await signatureOf(merge, 'git-commit')))
    const { stderr } = await run('git', ['-C', repository, 'verify-commit', id], { env })
    expect(stderr).toContain('Good signature')
  })
})
