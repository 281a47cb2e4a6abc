import { startGrafana } from '../support/fakes/grafana.ts'
import { bearer, openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

describeKind('grafana', async () => {
  const { api, token, accounts } = await startGrafana()
  return openRecipe('grafana', {
    api,
    config: { token },
    scopes: ['viewer'],
    exists: async ({ name }) => [...accounts.values()].some((one) => one.name === name),
    use: (issued) => ({ path: '/api/org', headers: bearer(issued) }),
  })
})
