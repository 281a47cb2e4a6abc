import { startGitea } from '../support/fakes/gitea.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

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
