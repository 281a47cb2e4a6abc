import { bearer, openRecipe } from '../support/fakes/open-recipe.ts'
import { startTerraformCloud } from '../support/fakes/terraform-cloud.ts'
import { describeKind } from './kind-contract.ts'

describeKind('terraform-cloud', async () => {
  const { api, token, tokens } = await startTerraformCloud('acme', ['team-BUHBEM97xboT8TVz'])
  return openRecipe('terraform-cloud', {
    api,
    config: { token, organization: 'acme' },
    scopes: ['team-BUHBEM97xboT8TVz'],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.description === name),
    use: (issued) => ({ path: '/api/v2/organizations', headers: bearer(issued) }),
    expiresAt: async (issued) =>
      Date.parse([...tokens.values()].find((one) => one.token === issued.secret)?.until ?? ''),
  })
})
