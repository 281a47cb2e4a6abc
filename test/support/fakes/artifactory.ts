import { randomBytes, randomUUID } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, startFakeApi } from './fake-api.ts'

const TOKEN = 'eyJ-admin-of-the-fake-0123456789'
const refusal = (code: string, message: string) => ({ errors: [{ code, message }] })

interface Token {
  readonly token_id: string
  readonly description: string
  readonly access_token: string
  readonly scope: string
  readonly expiry: number
  readonly revocable: boolean
}

/** The access tokens of the JFrog platform. */
export async function startArtifactory(groups: readonly string[]) {
  const tokens = new Map<string, Token>()
  const asAdmin = (request: FakeRequest, answer: () => FakeReply): FakeReply =>
    hasBearer(request, TOKEN) ? answer() : [401, refusal('UNAUTHORIZED', 'Invalid token')]
  const api = await startFakeApi(
    {
      'POST /access/api/v1/tokens': (request) =>
        asAdmin(request, () => {
          const {
            grant_type: grant,
            scope,
            expires_in: seconds,
            description = '',
            force_revocable: forced,
          } = request.json ?? {}
          if (grant !== 'client_credentials') return [400, refusal('BAD_REQUEST', 'grant_type')]
          const [, group = ''] = /^applied-permissions\/groups:([^,\s]+)$/.exec(String(scope)) ?? []
          if (!groups.includes(group)) return [400, refusal('BAD_REQUEST', 'Invalid scope')]
          if (!Number.isInteger(seconds) || Number(seconds) < 1)
            return [400, refusal('BAD_REQUEST', 'expires_in')]
          const token = {
            token_id: randomUUID(),
            description: String(description),
            access_token: `eyJ${randomBytes(40).toString('base64url')}`,
            scope: String(scope),
            expiry: Math.floor(Date.now() / 1000) + Number(seconds),
            // One that ends within six hours is not kept, unless that is asked for.
            revocable: forced === true || Number(seconds) > 21_600,
          }
          tokens.set(token.token_id, token)
          const { token_id: id, access_token: value } = token
          return [
            200,
            { token_id: id, access_token: value, expires_in: seconds, scope, token_type: 'Bearer' },
          ]
        }),
      'GET /access/api/v1/tokens': (request) =>
        asAdmin(request, () => {
          const wanted = request.query.get('description')
          const found = [...tokens.values()].filter(
            (one) => one.revocable && (wanted === null || one.description === wanted),
          )
          return [
            200,
            {
              tokens: found.map(({ token_id, description, expiry }) => ({
                token_id,
                description,
                expiry,
                refreshable: false,
              })),
            },
          ]
        }),
      'DELETE /access/api/v1/tokens/:id': (request) =>
        asAdmin(request, () => {
          const [id = ''] = request.parts
          if (tokens.get(id)?.revocable !== true) return [404, refusal('NOT_FOUND', 'Token not found')]
          tokens.delete(id)
          return [200]
        }),
      'GET /artifactory/api/system/ping': (request) =>
        [...tokens.values()].some((one) => hasBearer(request, one.access_token))
          ? [200, 'OK']
          : [401, refusal('UNAUTHORIZED', 'Token failed verification')],
    },
    [404, refusal('NOT_FOUND', 'Not found')],
  )
  return { api, token: TOKEN, tokens }
}
