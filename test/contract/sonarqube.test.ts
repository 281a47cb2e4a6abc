import { it } from 'vitest'
import { openRecipe } from '../support/fakes/open-recipe.ts'
import { startSonarQube } from '../support/fakes/sonarqube.ts'
import { describeKind } from './kind-contract.ts'
import { never, newRequest } from './open-kind.ts'

async function open(now?: () => number) {
  const { api, token, tokens } = await startSonarQube(['acme_app'], now)
  return openRecipe('sonarqube', {
    api,
    config: { token },
    scopes: ['acme_app:analyze'],
    exists: async ({ name }) => tokens.has(String(name)),
    use: ({ fields = {} }) => ({
      path: '/api/authentication/check',
      headers: { authorization: `Basic ${Buffer.from(`${fields['token']}:`).toString('base64')}` },
    }),
  })
}

describeKind('sonarqube', () => open())

it.each([-12, 0, 9, 14])('a server at UTC%i makes tokens at every hour of the day', async (zone) => {
  let at = Date.UTC(2030, 0, 2)
  const { backend, close } = await open(() => at + zone * 3_600_000)
  for (let hour = 0; hour < 24; hour += 1) {
    await backend.issue({ ...newRequest(['acme_app:analyze']), expiresAt: at + 60_000 }, never())
    at += 3_600_000
  }
  await close?.()
})
