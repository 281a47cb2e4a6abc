import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, startFakeApi } from './fake-api.ts'

const TOKEN = 'cfat-of-the-fake-0123456789abcdef'
const GROUPS = [
  '82e64a83756745bbbb1c9c2701bf816b',
  '4755a26eedb94da69e1066d98aa820be',
  'c8fed203ed3043cba015a93ad1616f1f',
  'e17beae8b8cb423a99b1730f21238bed',
]
const refusal = (code: number, message: string) => ({
  success: false,
  errors: [{ code, message }],
  messages: [],
  result: null,
})
const success = (result: unknown) => ({ success: true, errors: [], messages: [], result })

interface Token {
  readonly id: string
  readonly name: string
  readonly value: string
  readonly expires_on: string | undefined
  readonly policies: unknown
}

interface Policy {
  readonly effect?: unknown
  readonly resources?: Readonly<Record<string, unknown>>
  readonly permission_groups?: readonly { readonly id?: unknown }[]
}

function isPolicy({ effect, resources = {}, permission_groups: groups = [] }: Policy): boolean {
  const all = Object.entries(resources)
  const areResources = all.every(
    ([key, value]) => /^com\.cloudflare\.api\.account\.zone\.[0-9a-f]{32}$/.test(key) && value === '*',
  )
  return (
    effect === 'allow' &&
    all.length > 0 &&
    areResources &&
    groups.length > 0 &&
    groups.every(({ id }) => GROUPS.includes(String(id)))
  )
}

/** Cloudflare's account-owned API tokens. */
export async function startCloudflare(account: string) {
  const tokens = new Map<string, Token>()
  const inAccount = (request: FakeRequest, answer: () => FakeReply): FakeReply => {
    if (!hasBearer(request, TOKEN)) return [401, refusal(1000, 'Invalid API Token')]
    return request.parts[0] === account
      ? answer()
      : [403, refusal(9109, 'Unauthorized to access requested resource')]
  }
  const shown = ({ value: _, ...token }: Token) => ({
    ...token,
    status: 'active',
    issued_on: '2026-01-01T00:00:00Z',
  })
  const api = await startFakeApi(
    {
      'POST /client/v4/accounts/:account/tokens': (request) =>
        inAccount(request, () => {
          const { name, policies, expires_on: until } = request.json ?? {}
          if (typeof name !== 'string' || name === '' || name.length > 120)
            return [400, refusal(1001, 'Invalid token name')]
          if (!Array.isArray(policies) || policies.length === 0 || !policies.every(isPolicy))
            return [400, refusal(1001, 'Invalid policies')]
          // Seconds without a fraction.
          if (until !== undefined && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(String(until)))
            return [400, refusal(1001, 'Invalid expires_on')]
          const id = randomBytes(16).toString('hex')
          const token = {
            id,
            name,
            value: randomBytes(30).toString('base64url'),
            expires_on: until as string,
            policies,
          }
          tokens.set(id, token)
          return [200, success({ ...shown(token), value: token.value })]
        }),
      'GET /client/v4/accounts/:account/tokens': (request) =>
        inAccount(request, () => {
          const size = Number(request.query.get('per_page') ?? 20)
          if (!(size >= 5 && size <= 50)) return [400, refusal(1001, 'Invalid per_page')]
          const start = (Number(request.query.get('page') ?? 1) - 1) * size
          return [200, success([...tokens.values()].slice(start, start + size).map(shown))]
        }),
      'GET /client/v4/accounts/:account/tokens/verify': (request) =>
        inAccount(request, () => [200, success({ id: '1', status: 'active' })]),
      'DELETE /client/v4/accounts/:account/tokens/:id': (request) =>
        inAccount(request, () => {
          const [, id = ''] = request.parts
          return tokens.delete(id) ? [200, success({ id })] : [404, refusal(1003, 'Token not found')]
        }),
      'GET /client/v4/zones': (request) => {
        const used = [...tokens.values()].find(({ value }) => hasBearer(request, value))
        return used === undefined ? [403, refusal(9109, 'Invalid access token')] : [200, success([])]
      },
    },
    [404, refusal(7003, 'Could not route')],
  )
  return { api, token: TOKEN, tokens }
}
