import { expect, test } from 'vitest'
import { startGitLab } from '../support/fakes/gitlab.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'
import { never, newRequest } from './open-kind.ts'

describeKind('gitlab', async () => {
  const { api, token, tokens } = await startGitLab(['acme/app', 'acme/lib/x'])
  return openRecipe('gitlab', {
    api,
    config: { token, projects: ['acme/lib/x', 'acme/app'] },
    scopes: ['acme/app:read_repository', 'acme/app:read_registry'],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.name === name),
    use: ({ secret = '' }) => ({
      path: '/api/v4/projects/acme%2Fapp/repository/tree',
      headers: { 'private-token': secret },
    }),
  })
})

test.each(['group_17_bot_0a1b2c', 'project_4_bot'])(
  'a token of the bot user %s fails the check',
  async (username) => {
    const { api, token } = await startGitLab(['acme/app'], { username })
    const { backend, close } = await openRecipe('gitlab', {
      api,
      config: { token, projects: ['acme/app'] },
      scopes: ['acme/app:read_api'],
      exists: async () => false,
      use: () => ({ path: '/', headers: {} }),
    })
    await expect(backend.check(never())).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining('one of a group or project cannot create others'),
    })
    await expect(backend.issue(newRequest(['acme/app:read_api']), never())).rejects.toMatchObject({
      fault: 'misconfigured',
    })
    await close()
  },
)

test('write_registry gives what a push needs', async () => {
  const { api, token, tokens } = await startGitLab(['acme/app'])
  const { backend, close } = await openRecipe('gitlab', {
    api,
    config: { token, projects: ['acme/app'] },
    scopes: ['acme/app:write_registry'],
    exists: async () => false,
    use: () => ({ path: '/', headers: {} }),
  })
  await backend.issue(newRequest(['acme/app:write_registry', 'acme/app:read_registry']), never())
  expect([...tokens.values()].map(({ scopes }) => scopes)).toEqual([['read_registry', 'write_registry']])
  await close()
})
