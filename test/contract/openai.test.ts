import { bearer, openRecipe } from '../support/fakes/open-recipe.ts'
import { startOpenAi } from '../support/fakes/openai.ts'
import { describeKind } from './kind-contract.ts'

describeKind('openai', async () => {
  const { api, adminKey, accounts } = await startOpenAi(['proj_other', 'proj_abc'])
  return openRecipe('openai', {
    api,
    config: { admin_key: adminKey, projects: ['proj_other', 'proj_abc'] },
    scopes: ['proj_abc'],
    exists: async ({ name }) => [...accounts.values()].some((one) => one.name === name),
    use: (issued) => ({ path: '/v1/models', headers: bearer(issued) }),
  })
})
