import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHome, runCli, startWorld, type World } from '../cli/support.ts'
import type { NewAgent } from '../support/app.ts'
import { allow } from '../support/command.ts'
import { newPerson } from '../support/person.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ jobs: true })
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  env = {
    ...world.bareEnv,
    PATH: `${bin}:${world.bareEnv['PATH']}`,
    MAYFLY_SERVER: world.url,
    MAYFLY_DATA_DIR: world.app.directory,
  }
})
afterAll(() => world.close())

/** The agent of the pages, whose token the home's login has, and which has a credential under each of `held`. */
async function runPage(path: string, { scopes = ['demo'], held = [] as string[] } = {}) {
  const reviewer = await world.app.newAgent({ name: 'reviewer', scopes })
  const login = await runCli(['login'], { env, stdin: reviewer.token })
  expect(login).toMatchObject({ code: 0 })
  for (const scope of held) expect((await issue(reviewer, scope)).status).toBe(200)
  await runGuide(path, { env, cwd: world.home, replace: [TODAY] })
  return reviewer
}

/** The test has no entries of last Tuesday. */
const TODAY = ['last tuesday', 'today'] as const

const issue = (agent: NewAgent, scope: string) =>
  agent.client.post('/v1/credentials/demo', { scopes: [scope] })

async function audited(agent: NewAgent, action: string) {
  const { body } = await world.app.admin('GET', `/v1/admin/audit?agent_id=${agent.id}&action=${action}`)
  return body
}

test('docs/guides/who-had-what.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/who-had-what.md', { held: ['read'] })
  await reviewer.client.delete('/v1/self')
})

test('docs/guides/add-a-scope.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/add-a-scope.md', { scopes: ['demo:read'] })
  const [requested, removed, added] = await audited(reviewer, 'agent.scopes_changed')
  expect(added.scopes).toEqual(['demo:read', 'demo:write'])
  expect(removed.scopes).toEqual(['demo:read'])
  expect(requested.scopes).toEqual(['demo:write'])
  expect(await audited(reviewer, 'credential.revoked')).toHaveLength(1)
  expect((await issue(reviewer, 'write')).status).toBe(200)
  await reviewer.client.delete('/v1/self')
})

test('docs/guides/leaked-token.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/leaked-token.md', { held: ['read'] })
  expect((await reviewer.client.get('/v1/status')).status).toBe(401)
  expect(await audited(reviewer, 'credential.revoked')).toHaveLength(1)
  await world.app.admin('DELETE', '/v1/admin/agents/reviewer')
})

test('docs/guides/end-an-agent.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/end-an-agent.md', { held: ['read'] })
  expect((await reviewer.client.get('/v1/status')).status).toBe(401)
  expect(await audited(reviewer, 'credential.revoked')).toHaveLength(1)
})

test('docs/guides/people.md works as shown', async () => {
  const { home, env: own } = await newHome()
  const browser = await startBrowserOf('alice@example.com', join(home, 'bin'))
  const host = `localhost:${new URL(world.url).port}`
  try {
    await runGuide('docs/guides/people.md', {
      env: {
        ...own,
        PATH: `${join(home, 'bin')}:${env['PATH']}`,
        MAYFLY_SERVER: `http://${host}`,
        MAYFLY_DATA_DIR: world.app.directory,
        DISPLAY: ':0',
      },
      cwd: home,
      replace: [['localhost:8700', host]],
    })
  } finally {
    await browser.close()
  }
  const { body } = await world.app.admin('GET', '/v1/admin/audit?action=operator.deleted')
  expect(body).toHaveLength(1)
  const [login] = await world.app.admin('GET', '/v1/admin/audit?action=session.allowed').then((r) => r.body)
  expect(login).toMatchObject({ actor: 'operator:alice@example.com', details: { method: 'browser' } })
  await world.app.local.delete('/v1/admin/operators/alice@example.com')
})

/** An `xdg-open` whose browser is that of this person, who allows what they are shown. */
async function startBrowserOf(email: string, bin: string) {
  const server = createServer((request, response) => {
    const { search } = new URL(request.url ?? '', 'http://localhost')
    const opened = async () => {
      const person = await newPerson(world.app, { email })
      const { body } = await allow(person, { request: search })
      await fetch(body.redirect_to)
    }
    void opened().finally(() => response.end())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  await mkdir(bin)
  const script = `#!/bin/sh\nexec curl -sg "http://127.0.0.1:${port}/$(printf %s "$1" | sed 's/^[^?]*//')"\n`
  await writeFile(join(bin, 'xdg-open'), script, { mode: 0o755 })
  return { close: () => new Promise((done) => server.close(done)) }
}

test('docs/guides/console.md works as shown', async () => {
  await runGuide('docs/guides/console.md', {
    env,
    cwd: world.home,
    replace: [['localhost:8700', `localhost:${new URL(world.url).port}`]],
  })
  const { body } = await world.app.admin('GET', '/v1/admin/operators')
  expect(body).toMatchObject([{ email: 'carol@example.com', last_login: null }])
})
