import { startArtifactory } from '../support/fakes/artifactory.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

describeKind('artifactory', async () => {
  const { api, token, tokens } = await startArtifactory(['readers'])
  return openRecipe('artifactory', {
    api,
    config: { token },
    scopes: ['group:readers'],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.description === name),
    use: ({ fields = {} }) => ({
      path: '/artifactory/api/system/ping',
      headers: { authorization: `Bearer ${fields['access_token']}` },
    }),
  })
})
