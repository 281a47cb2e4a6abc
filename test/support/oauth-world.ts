import { afterAll, beforeAll } from 'vitest'
import type { CreatedAgent } from '../../src/core/agents/create-agent.ts'
import { type OAuthApp, startOAuthApp } from './oauth-app.ts'
import { type OAuthCalls, oauthCalls } from './oauth-calls.ts'

export let app: OAuthApp
export let calls: OAuthCalls
/** An agent with scopes of several backends, of which `tokens` exists. */
export let ada: CreatedAgent

/** One app for the whole file. */
export function useOAuthWorld(): void {
  beforeAll(async () => {
    app = await startOAuthApp({ audience: ['https://api.example', 'sts.example'] })
    calls = oauthCalls(app)
    ada = await app.createAgent({ name: 'ada', scopes: ['github:o/*', 'db:read', 'tokens'] })
    await app.createJwtBackend('tokens')
  })
  afterAll(() => app.close())
}
