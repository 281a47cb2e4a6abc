import { startCloudflare } from '../support/fakes/cloudflare.ts'
import { bearer, openRecipe } from '../support/fakes/open-recipe.ts'
import { describeKind } from './kind-contract.ts'

const ACCOUNT = '023e105f4ecef8ad9ca31a8372d0c353'
const ZONE = '9a7806061c88ada191ed06f989cc3dac'

describeKind('cloudflare', async () => {
  const { api, token, tokens } = await startCloudflare(ACCOUNT)
  return openRecipe('cloudflare', {
    api,
    config: { token, account_id: ACCOUNT },
    scopes: [`${ZONE}:dns_read`, `${ZONE}:cache_purge`],
    exists: async ({ name }) => [...tokens.values()].some((one) => one.name === name),
    use: (issued) => ({ path: '/client/v4/zones', headers: bearer(issued) }),
    expiresAt: async (issued) =>
      Date.parse([...tokens.values()].find(({ value }) => value === issued.secret)?.expires_on ?? ''),
  })
})
