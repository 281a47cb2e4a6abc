import { afterEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { endOwnRun } from '../credentials/end-run-now.ts'
import { issueCredential } from '../credentials/issue-credential.ts'
import type { RunStateView } from '../parts.ts'
import { startRun } from '../runs/start-run.ts'
import { followRun } from './followed-runs.ts'

let test: TestCore
afterEach(() => test.close())

it.each([
  ['first', 'livingOfRuns', 0],
  ['next', 'endedAmong', 1],
] as const)(
  'a run that ends just before the %s look at its credentials is told of as ended',
  async (_, look, told) => {
    test = await testCore()
    const { core } = test
    await createBackend(core, LOCAL, { type: 'jwt', name: 'orders', config: { audience: 'x' } }, false)
    const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['orders'] })
    const actor = await test.actor(token)
    const { id } = await startRun(core, actor, {})
    const issue = () => issueCredential(core, actor, { backend: 'orders', run: id, scopes: ['read'] })
    const { id: credential } = await issue()
    const credentials = core.store.credentials as Record<typeof look, (...given: never[]) => Promise<unknown>>
    const read = credentials[look]
    credentials[look] = async (...given) => {
      credentials[look] = read
      await endOwnRun(core, actor, id)
      return read(...given)
    }
    const seen: RunStateView[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    const state = (view: RunStateView) => void seen.push(view)
    await followRun(core, actor, undefined, id, { state, alive: () => undefined, end: resolve })
    await promise
    expect(seen.map(({ isRunning, credentials: ids }) => [isRunning, ids])).toEqual([
      ...[[true, [credential]]].slice(0, told),
      [false, []],
    ])
  },
)
