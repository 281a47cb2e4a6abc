import { startGitLab } from '../support/fakes/gitlab.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

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
