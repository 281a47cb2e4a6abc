import { openRecipe } from '../support/fakes/open-recipe.ts'
import { startSonarQube } from '../support/fakes/sonarqube.ts'
import { describeKind } from './kind-contract.ts'

describeKind('sonarqube', async () => {
  const { api, token, tokens } = await startSonarQube(['acme_app'])
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
})
