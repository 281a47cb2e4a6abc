import { startDoppler } from '../support/fakes/doppler.ts'
import { bearer, openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

describeKind('doppler', async () => {
  const { api, token, tokens } = await startDoppler(['backend/dev', 'backend/prd'])
  return openRecipe('doppler', {
    api,
    config: { token, configs: ['backend/dev', 'backend/prd'] },
    scopes: ['backend/prd:read'],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.name === name),
    use: (issued) => ({ path: '/v3/configs/config/secrets', headers: bearer(issued) }),
    expiresAt: async (issued) =>
      Date.parse([...tokens.values()].find(({ key }) => key === issued.secret)?.expires_at ?? ''),
  })
})
