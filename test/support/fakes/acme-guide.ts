import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, startFakeApi } from './fake-api.ts'

/** The service of docs/guides/write-a-recipe.md. */
export async function startAcme(adminKey: string) {
  const keys = new Map<number, { readonly id: number; readonly label: string; readonly secret: string }>()
  let last = 0
  const asAdmin = (request: FakeRequest, answer: () => FakeReply): FakeReply => {
    if (!hasBearer(request, adminKey)) return [401, { error: 'unauthorized' }]
    return request.parts[0] === 'billing' ? answer() : [404, { error: 'no such team' }]
  }
  const api = await startFakeApi(
    {
      'POST /v1/teams/:team/keys': (request) =>
        asAdmin(request, () => {
          const { label, role, expires_at: until } = request.json ?? {}
          if (typeof label !== 'string' || !['viewer', 'editor'].includes(String(role)))
            return [400, { error: 'role' }]
          if (!(Date.parse(String(until)) > Date.now())) return [400, { error: 'expires_at' }]
          last += 1
          const key = { id: last, label, secret: `acme-${randomBytes(20).toString('hex')}` }
          keys.set(last, key)
          return [201, { key }]
        }),
      'GET /v1/teams/:team/keys': (request) =>
        asAdmin(request, () => {
          const start = (Number(request.query.get('page') ?? 1) - 1) * 50
          const page = [...keys.values()].slice(start, start + 50)
          return [200, { keys: page.map(({ id, label }) => ({ id, label })) }]
        }),
      'DELETE /v1/teams/:team/keys/:id': (request) =>
        asAdmin(request, () =>
          keys.delete(Number(request.parts[1])) ? [204] : [404, { error: 'no such key' }],
        ),
      'GET /v1/orders': (request) =>
        [...keys.values()].some(({ secret }) => hasBearer(request, secret))
          ? [200, []]
          : [401, { error: 'unauthorized' }],
    },
    [404, { error: 'not found' }],
  )
  return { api, keys }
}
