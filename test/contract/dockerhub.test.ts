import { startDockerHub } from '../support/fakes/dockerhub.ts'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

describeKind('dockerhub', async () => {
  const { api, login, tokens } = await startDockerHub()
  return openRecipe('dockerhub', {
    api,
    config: login,
    scopes: ['repo:read'],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.token_label === name),
    use: ({ fields = {} }) => ({
      path: '/token',
      headers: {
        authorization: `Basic ${Buffer.from(`${fields['username']}:${fields['password']}`).toString('base64')}`,
      },
    }),
    expiresAt: async (issued) =>
      Date.parse(
        [...tokens.values()].find(({ token }) => token === issued.fields?.['password'])?.expires_at ?? '',
      ),
  })
})
