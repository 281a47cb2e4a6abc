import { bearer, openRecipe } from '../support/fakes/open-recipe.ts'
import { startTailscale } from '../support/fakes/tailscale.ts'
import { describeKind } from './kind-contract.ts'

describeKind('tailscale', async () => {
  const { api, client, keys } = await startTailscale(['tag:ci', 'tag:web'])
  return openRecipe('tailscale', {
    api,
    config: { client_id: client.id, client_secret: client.secret },
    scopes: ['ci', 'web'],
    exists: async ({ name }) =>
      [...keys.values()].some((one) => one.description === name && one.revoked === undefined),
    use: (issued) => ({ path: '/machine/register', headers: bearer(issued) }),
  })
})
