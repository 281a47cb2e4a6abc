import type { CreatedAgent } from '../../src/core/agents/create-agent.ts'
import type { OAuthApp } from './oauth-app.ts'

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
export const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export type Fields = Record<string, string>
export type OAuthCalls = ReturnType<typeof oauthCalls>

export const secretOf = (agent: CreatedAgent): Fields => ({
  client_id: agent.agent.clientId,
  client_secret: agent.clientSecret,
})

/** Requests to the app in process. Failures are counted per address, so each request has its own unless one is given. */
export function oauthCalls(app: OAuthApp) {
  let addresses = 0

  async function post(path: string, fields: Fields | string, headers: Fields = {}, address?: string) {
    addresses += 1
    const response = await app.server.inject({
      method: 'POST',
      url: path,
      payload: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
      headers: { ...FORM, ...headers },
      remoteAddress: address ?? `10.0.${addresses >> 8}.${addresses & 255}`,
    })
    const body: Record<string, unknown> = JSON.parse(response.body)
    return { status: response.statusCode, headers: response.headers, text: response.body, body }
  }

  const token = (agent: CreatedAgent, more: Fields = {}, address?: string) =>
    post('/oauth/token', { grant_type: 'client_credentials', ...secretOf(agent), ...more }, {}, address)

  return {
    post,
    token,
    async accessToken(agent: CreatedAgent, more: Fields = {}): Promise<string> {
      const { status, text, body } = await token(agent, more)
      if (status !== 200) throw new Error(text)
      return String(body['access_token'])
    },
    /** The status with which the API answers this bearer. */
    async statusWith(bearer: string): Promise<number> {
      const headers = { authorization: `Bearer ${bearer}` }
      return (await app.server.inject({ url: '/v1/status', headers })).statusCode
    },
    introspect: async (agent: CreatedAgent, text: string) =>
      (await post('/oauth/introspect', { ...secretOf(agent), token: text })).body,
    revoke: (agent: CreatedAgent, text: string) => post('/oauth/revoke', { ...secretOf(agent), token: text }),
    async issueCredential(agent: CreatedAgent, backend: string): Promise<{ id: string; token: string }> {
      const response = await app.server.inject({
        method: 'POST',
        url: '/api/v1/credentials',
        headers: { authorization: `Bearer ${agent.token}` },
        payload: { backend, ttl: '10m' },
      })
      if (response.statusCode !== 201) throw new Error(response.body)
      return response.json()
    },
  }
}
