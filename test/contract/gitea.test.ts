import { expect, test } from 'vitest'
import { startGitea } from '../support/fakes/gitea.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'
import { never, newRequest } from './open-kind.ts'

describeKind('gitea', async () => {
  const { api, login, tokens } = await startGitea()
  return openRecipe('gitea', {
    api,
    config: login,
    scopes: ['repository:read', 'issue:write'],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.name === name),
    use: ({ fields = {} }) => ({
      path: '/api/v1/user/repos',
      headers: { authorization: `token ${fields['token']}` },
    }),
  })
})

async function openGitea(given: Parameters<typeof startGitea>[0] = {}) {
  const { api, login } = await startGitea(given)
  const config = login
  return openRecipe('gitea', {
    ...{ api, config, scopes: ['repository:read'] },
    exists: async () => false,
    use: () => ({ path: '/', headers: {} }),
  })
}

test('a server that cuts its pages shorter than asked is listed to the end', async () => {
  const { backend, close } = await openGitea({ maxItems: 20 })
  const made = 46
  for (let n = 0; n < made; n += 1) await backend.issue(newRequest(['repository:read']), never())
  const found = new Set<string>()
  for (let after: string | undefined; ; ) {
    const page = await backend.list?.(after, never())
    for (const { credentialId } of page?.items ?? []) found.add(credentialId)
    after = page?.next
    if (after === undefined) break
  }
  expect(found.size).toBe(made)
  await close()
})

test('nobody writes the account or the administration, where what they add outlives the token', async () => {
  const { kind, close } = await openGitea()
  expect(
    ['user:write', 'admin:write', 'user:read', 'admin:read', 'issue:write'].map((scope) =>
      kind.scopes.valid(scope),
    ),
  ).toEqual([false, false, true, true, true])
  await close()
})
