import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const issue = async () =>
  (await world.agent.client.post('/api/v1/credentials', { backend: 'demo' })).body.id as string
interface Line {
  id: string
  action: string
  credential_id: string | null
}
const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

describe('audit', () => {
  test('every filter narrows, the newest stands last, one JSON object a line', async () => {
    const [first, second] = [await issue(), await issue()]
    const read = async (...argv: string[]) => linesOf((await mayfly('audit', '--json', ...argv)).stdout)
    const issued = await read('--action', 'credential.issued')
    expect(issued.map((line) => line.credential_id).slice(-2)).toEqual([first, second])
    expect(await read('--credential', first)).toEqual([expect.objectContaining({ credential_id: first })])
    expect(await read('--action', 'credential.issued', '-n', '1')).toEqual(issued.slice(-1))
    expect(await read('--backend', 'demo', '--action', 'backend.created')).toHaveLength(1)
    expect(await read('--agent', world.agent.name, '--action', 'credential.issued')).toEqual(issued)
    expect(await read('--actor', world.agent.name, '--action', 'credential.issued')).toEqual(issued)
    expect(await read('--actor', 'local', '--action', 'credential.issued')).toEqual([])
    expect(await read('--agent', world.agent.id, '--since', '1h', '--until', '2020-01-01')).toEqual([])
    expect(await read('--since', '2099-01-01')).toEqual([])
    expect(await read('-n', '0')).toEqual([])
  })

  test('a name that no agent or backend ever had is an error, and no empty log', async () => {
    const unknown = { code: 1, stdout: '' }
    for (const argv of [
      ['--agent', 'nosuch'],
      ['--actor', 'nosuch'],
      ['--follow', '--agent', 'nosuch'],
    ])
      expect(await mayfly('audit', ...argv)).toMatchObject({
        ...unknown,
        stderr: expect.stringContaining('No agent has, or ever had, this name or id.'),
      })
    expect(await mayfly('audit', '--backend', 'nosuch')).toMatchObject({
      ...unknown,
      stderr: expect.stringContaining('There is no such backend.'),
    })
  })

  test('the history of a deleted agent stays, and a filter that leaves nothing of it says so', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    await mayfly('agent', 'rm', agent.name, '--yes')
    const { stdout } = await mayfly('audit', '--agent', agent.name, '--json')
    expect(linesOf(stdout).map(({ action }) => action)).toEqual(['agent.created', 'agent.deleted'])
    const none = await mayfly('audit', '--agent', agent.name, '--action', 'credential.issued')
    expect(none).toEqual({ code: 0, stdout: '', stderr: 'No entry matches.\n' })
  })

  test('more than one page, each entry once', async () => {
    const before = (await world.app.admin('GET', '/v1/admin/audit?limit=1000')).body.length
    const all = linesOf((await mayfly('audit', '--all', '--json')).stdout)
    expect(all.length).toBeGreaterThanOrEqual(before)
    expect(new Set(all.map((line) => line.id)).size).toBe(all.length)
    expect(all.map((line) => line.id)).toEqual(all.map((line) => line.id).sort())
  })

  test('at a terminal, says how to see more than the newest 50', async () => {
    for (let count = 0; count < 51; count += 1) await issue()
    const argv = ['audit', '--action', 'credential.issued']
    const page = await runCli(argv, { env, tty: true })
    expect(page.stdout.trimEnd().split('\n')).toHaveLength(50)
    expect(page.stderr).toBe('The newest 50. See more with --limit NUMBER, --since TIME or --all.\n')
    for (const more of [['--all'], ['--limit', '50']])
      expect((await runCli([...argv, ...more], { env, tty: true })).stderr).toBe('')
    expect((await runCli(argv, { env })).stderr).toBe('')
  })

  test('prints time, action, actor and object for people', async () => {
    const id = await issue()
    const text = (await mayfly('audit', '--agent', world.agent.name)).stdout
    expect(text).toMatch(
      new RegExp(`^\\d{4}-\\S+Z  credential\\.issued +${world.agent.name}  demo  ${id}  \\*  10m$`, 'm'),
    )
  })

  test.each<[string, string[], RegExp]>([
    ['an action that there is not', ['--action', 'agent.cretaed'], /did you mean "agent.created"\?/],
    ['a time', ['--since', 'yesterday'], /^mayfly: --since must be a time/],
    ['a credential', ['--credential', 'x'], /^mayfly: --credential must be a credential id/],
    ['a number', ['--limit', '-1'], /--limit must be a whole number/],
    ['both', ['--limit', '1', '--all'], /exclude each other/],
    ['an end', ['--follow', '--until', '1h'], /--follow and --until exclude each other/],
  ])('wrong usage: %s', async (_, argv, message) => {
    const ended = await mayfly('audit', ...argv)
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([2, '', expect.stringMatching(message)])
  })

  test('without the scope, names it', async () => {
    const ended = await runCli(['audit'], { env: world.env })
    expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining('admin:audit:read')])
  })
})

describe('audit --follow', () => {
  test('shows what is written from now on, once each, not its own reading; Ctrl-C ends it', async () => {
    const following = await follow('-n', '1', '--agent', world.agent.name)
    const wanted: string[] = []
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 5; i += 1) wanted.push(await issue())
      await following.said(wanted.at(-1) ?? '', 'stdout')
    }
    following.child.kill('SIGINT')
    const ended = await following.ended
    expect([ended.code, ended.stderr]).toEqual([130, ''])
    const lines = linesOf(ended.stdout).filter((line) => line.action === 'credential.issued')
    expect(lines.slice(1).map((line) => line.credential_id)).toEqual(wanted)
  })

  test('without a filter, does not follow its own entries', async () => {
    const following = await follow('-n', '5')
    const ids: string[] = []
    // Each is shown by a later poll than the one before.
    for (let round = 0; round < 3; round += 1) {
      ids.push(await issue())
      await following.said(ids.at(-1) ?? '', 'stdout')
    }
    following.child.kill('SIGTERM')
    const { stdout, code } = await following.ended
    expect(code).toBe(143)
    const shown = linesOf(stdout).slice(-3)
    expect(shown.map((line) => line.credential_id)).toEqual(ids)
  })

  test('an entry that was finished late, with an earlier time, is not missed', async () => {
    const following = await follow('-n', '1', '--agent', world.agent.name)
    const seen = await issue()
    await following.said(seen, 'stdout')
    const { store } = world.app.core
    const [entry] = await store.audit.query({ agentId: world.agent.id }, 1)
    if (entry === undefined) throw new Error('no entry')
    // As another node would, whose commit took three seconds: its id is from before the one that was shown.
    const at = entry.at - 3_000
    const late = { ...entry, id: lowestBodyAt(at), at, credentialId: `cred_${lowestBodyAt(at)}` }
    await store.commit([store.audit.append(late)])
    await following.said(late.credentialId, 'stdout')
    following.child.kill('SIGINT')
    const ids = linesOf((await following.ended).stdout).map((line) => line.credential_id)
    expect(ids.slice(-2)).toEqual([seen, late.credentialId])
  })

  test('reports a server that goes down once, and waits for it', async () => {
    const short = await startWorld()
    const own = { ...short.bareEnv, MAYFLY_SERVER: short.url, MAYFLY_TOKEN: '' }
    const admin = await short.app.newAgent({ scopes: ['admin:audit:*'] })
    const following = spawnCli(['audit', '--follow', '--json'], {
      env: { ...own, MAYFLY_TOKEN: admin.token },
    })
    await following.said('agent.created', 'stdout')
    await short.close()
    expect(await following.said('Retrying')).toBe(
      `Cannot reach ${short.url}: nothing is listening there. Retrying.\n`,
    )
    following.child.kill('SIGINT')
    expect((await following.ended).code).toBe(130)
  })
})

/** One that has begun: it has shown an entry that was there. */
async function follow(...argv: string[]) {
  const old = await issue()
  const following = spawnCli(['audit', '--follow', '--json', ...argv], { env })
  await following.said(old, 'stdout')
  return following
}
