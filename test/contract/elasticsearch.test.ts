import { startElasticsearch } from '../support/fakes/elasticsearch.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

describeKind('elasticsearch', async () => {
  const { api, login, keys } = await startElasticsearch()
  return openRecipe('elasticsearch', {
    api,
    config: login,
    scopes: ['orders:read', 'logs-*:ingest'],
    exists: async ({ name }) => [...keys.values()].some((one) => one.name === name && !one.invalidated),
    use: ({ fields = {} }) => ({
      path: '/_security/_authenticate',
      headers: { authorization: `ApiKey ${fields['encoded_key']}` },
    }),
  })
})
