import { randomBytes, randomUUID } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, startFakeApi } from './fake-api.ts'

const LOGIN = { username: 'acmebot', password: 'password-of-the-fake' }
const SCOPES = ['repo:admin', 'repo:write', 'repo:read', 'repo:public_read']
const refusal = (message: string) => ({ errinfo: null, message })

interface Token {
  readonly uuid: string
  readonly token_label: string
  readonly token: string
  readonly scopes: readonly string[]
  readonly expires_at: string | null
}

/** Docker Hub's personal access tokens. */
export async function startDockerHub() {
  const tokens = new Map<string, Token>()
  const sessions = new Set<string>()
  const loggedIn = (request: FakeRequest, answer: () => FakeReply): FakeReply =>
    [...sessions].some((one) => hasBearer(request, one)) ? answer() : [401, refusal('unauthorized')]
  const api = await startFakeApi(
    {
      'POST /v2/auth/token': ({ json }) => {
        if (json?.['identifier'] !== LOGIN.username || json['secret'] !== LOGIN.password)
          return [401, { detail: 'Incorrect authentication credentials' }]
        const session = `eyJ${randomBytes(24).toString('base64url')}`
        sessions.add(session)
        return [200, { access_token: session }]
      },
      'POST /v2/access-tokens': (request) =>
        loggedIn(request, () => {
          const { token_label: label, scopes, expires_at: until = null, ...unknown } = request.json ?? {}
          if (typeof label !== 'string' || label.length < 1 || label.length > 100)
            return [400, refusal('token_label is invalid')]
          const areScopes =
            Array.isArray(scopes) && scopes.length > 0 && scopes.every((one) => SCOPES.includes(one))
          if (!areScopes || Object.keys(unknown).length > 0) return [400, refusal('scopes is invalid')]
          if (until !== null && Number.isNaN(Date.parse(String(until))))
            return [400, refusal('expires_at is invalid')]
          const token = {
            uuid: randomUUID(),
            token_label: label,
            token: `dckr_pat_${randomBytes(20).toString('base64url')}`,
            scopes,
            expires_at: until as string | null,
          }
          tokens.set(token.uuid, token)
          return [201, { ...token, is_active: true }]
        }),
      'GET /v2/access-tokens': (request) =>
        loggedIn(request, () => {
          const size = Number(request.query.get('page_size') ?? 10)
          const start = (Number(request.query.get('page') ?? 1) - 1) * size
          const results = [...tokens.values()]
            .slice(start, start + size)
            .map((one) => ({ ...one, token: '' }))
          return [200, { count: tokens.size, next: null, previous: null, results }]
        }),
      'DELETE /v2/access-tokens/:uuid': (request) =>
        loggedIn(request, () =>
          tokens.delete(request.parts[0] ?? '') ? [204] : [404, refusal('not found')],
        ),
      // The registry's token server.
      'GET /token': ({ headers }) => {
        const given = Buffer.from(String(headers.authorization).slice('Basic '.length), 'base64').toString()
        const isGood = [...tokens.values()].some(({ token }) => given === `${LOGIN.username}:${token}`)
        return isGood ? [200, { token: 'x' }] : [401, { details: 'incorrect username or password' }]
      },
    },
    [404, refusal('not found')],
  )
  return { api, login: LOGIN, tokens, sessions }
}
