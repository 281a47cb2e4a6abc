import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, startFakeApi } from './fake-api.ts'

const TOKEN = 'glsa_ofTheFake0123456789'
const refusal = (message: string) => ({ message })

interface Account {
  readonly id: number
  readonly name: string
  readonly role: string
  readonly keys: { readonly key: string; readonly until: number }[]
}

/** Grafana's service accounts with their tokens. */
export async function startGrafana() {
  const accounts = new Map<number, Account>()
  let last = 0
  const asAdmin = (request: FakeRequest, answer: () => FakeReply): FakeReply =>
    hasBearer(request, TOKEN) ? answer() : [401, refusal('Invalid API key')]
  const shown = ({ id, name, role, keys }: Account) => ({
    id,
    name,
    login: `sa-1-${name}`,
    orgId: 1,
    isDisabled: false,
    role,
    tokens: keys.length,
    avatarUrl: '',
  })
  const api = await startFakeApi(
    {
      'POST /api/serviceaccounts': (request) =>
        asAdmin(request, () => {
          const { name, role = 'Viewer' } = request.json ?? {}
          if (typeof name !== 'string' || name === '') return [400, refusal('bad request data')]
          if (!['None', 'Viewer', 'Editor', 'Admin'].includes(String(role)))
            return [400, refusal('invalid role specified')]
          if ([...accounts.values()].some((one) => one.name === name))
            return [400, refusal('service account already exists')]
          last += 1
          const account = { id: last, name, role: String(role), keys: [] }
          accounts.set(last, account)
          return [201, shown(account)]
        }),
      'POST /api/serviceaccounts/:id/tokens': (request) =>
        asAdmin(request, () => {
          const account = accounts.get(Number(request.parts[0]))
          const { name, secondsToLive: seconds = 0 } = request.json ?? {}
          if (account === undefined) return [404, refusal('service account not found')]
          if (typeof name !== 'string' || !Number.isInteger(seconds) || Number(seconds) < 0)
            return [400, refusal('Bad request data')]
          const key = `glsa_${randomBytes(24).toString('base64url')}`
          account.keys.push({ key, until: Date.now() + Number(seconds) * 1000 })
          return [200, { id: account.keys.length, name, key }]
        }),
      'DELETE /api/serviceaccounts/:id': (request) =>
        asAdmin(request, () =>
          accounts.delete(Number(request.parts[0]))
            ? [200, refusal('Service account deleted')]
            : [404, refusal('service account not found')],
        ),
      'GET /api/serviceaccounts/search': (request) =>
        asAdmin(request, () => {
          const perPage = Number(request.query.get('perpage') ?? 1000)
          const page = Number(request.query.get('page') ?? 1)
          const found = [...accounts.values()].filter(({ name }) =>
            name.includes(request.query.get('query') ?? ''),
          )
          const serviceAccounts = found.slice((page - 1) * perPage, page * perPage).map(shown)
          return [200, { totalCount: found.length, serviceAccounts, page, perPage }]
        }),
      'GET /api/org': (request) => {
        if (hasBearer(request, TOKEN)) return [200, { id: 1, name: 'Main Org.' }]
        const keys = [...accounts.values()].flatMap((one) => one.keys)
        const used = keys.find(({ key }) => hasBearer(request, key))
        return used !== undefined && used.until > Date.now()
          ? [200, { id: 1 }]
          : [401, refusal('Invalid API key')]
      },
    },
    [404, refusal('Not found')],
  )
  return { api, token: TOKEN, accounts }
}
