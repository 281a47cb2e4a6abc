import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, startFakeApi } from './fake-api.ts'

const LOGIN = { username: 'mayfly', password: 'password-of-the-fake' }
const SCOPE =
  /^(?:read|write):(?:activitypub|admin|issue|misc|notification|organization|package|repository|user)$/
const refusal = (message: string) => ({ message, url: '/api/swagger' })

interface Token {
  readonly id: number
  readonly name: string
  readonly sha1: string
  readonly scopes: readonly string[]
}

/** Gitea's access tokens, which only a name and a password can manage. */
/** `maxItems`: the setting MAX_RESPONSE_ITEMS. */
export async function startGitea({ maxItems = 50 }: { maxItems?: number } = {}) {
  const tokens = new Map<number, Token>()
  let last = 0
  const expected = `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')}`
  const asUser = (request: FakeRequest, answer: () => FakeReply): FakeReply => {
    if (request.headers.authorization !== expected) return [401, refusal('auth required')]
    return request.parts[0] === LOGIN.username ? answer() : [403, refusal('auth failed')]
  }
  const api = await startFakeApi(
    {
      'POST /api/v1/users/:username/tokens': (request) =>
        asUser(request, () => {
          const { name, scopes } = request.json ?? {}
          if (typeof name !== 'string' || name === '') return [422, refusal('[Name]: Required')]
          if ([...tokens.values()].some((one) => one.name === name))
            return [400, refusal('access token name has been used already')]
          if (!Array.isArray(scopes) || scopes.length === 0 || !scopes.every((one) => SCOPE.test(one)))
            return [400, refusal('access token must have a scope')]
          last += 1
          const token = { id: last, name, sha1: randomBytes(20).toString('hex'), scopes }
          tokens.set(last, token)
          return [201, { ...token, token_last_eight: token.sha1.slice(-8) }]
        }),
      'GET /api/v1/users/:username/tokens': (request) =>
        asUser(request, () => {
          const size = Math.min(Number(request.query.get('limit') ?? 30), maxItems)
          const start = (Number(request.query.get('page') ?? 1) - 1) * size
          return [200, [...tokens.values()].slice(start, start + size).map((one) => ({ ...one, sha1: '' }))]
        }),
      // The last part is an id or a name.
      'DELETE /api/v1/users/:username/tokens/:token': (request) =>
        asUser(request, () => {
          const [, key = ''] = request.parts
          const found = [...tokens.values()].find(({ id, name }) => name === key || String(id) === key)
          if (found === undefined) return [404, refusal('token not found')]
          tokens.delete(found.id)
          return [204]
        }),
      'GET /api/v1/user/repos': ({ headers }) =>
        [...tokens.values()].some(({ sha1 }) => headers.authorization === `token ${sha1}`)
          ? [200, []]
          : [401, refusal('token is required')],
    },
    [404, refusal('not found')],
  )
  return { api, login: LOGIN, tokens }
}
