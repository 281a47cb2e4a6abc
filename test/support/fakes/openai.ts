import { randomBytes } from 'node:crypto'
import { type FakeRequest, hasBearer, nextId, startFakeApi } from './fake-api.ts'

const ADMIN_KEY = 'sk-admin-of-the-fake-0123456789'
const error = (message: string, code: string | null) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
const UNAUTHORIZED = [401, error('Incorrect API key provided.', 'invalid_api_key')] as const
const NOT_FOUND = [404, error('Not found.', null)] as const

interface Account {
  readonly id: string
  readonly name: string
  readonly project: string
  readonly key: string
  readonly expiresAt: number | null
}

/** The part of OpenAI's administration API that deals with service accounts, and one call that needs an API key. */
export async function startOpenAi(projects: readonly string[]) {
  const accounts = new Map<string, Account>()
  const inProject = (request: FakeRequest, answer: (project: string) => readonly [number, unknown]) => {
    if (!hasBearer(request, ADMIN_KEY)) return UNAUTHORIZED
    const [project = ''] = request.parts
    return projects.includes(project) ? answer(project) : NOT_FOUND
  }
  const shown = ({ id, name }: Account) => ({
    object: 'organization.project.service_account',
    id,
    name,
    role: 'member',
    created_at: 1,
  })
  const api = await startFakeApi(
    {
      'POST /v1/organization/projects/:project/service_accounts': (request) =>
        inProject(request, (project) => {
          const { name, expires_in_seconds: seconds, ...unknown } = request.json ?? {}
          if (typeof name !== 'string' || name === '')
            return [400, error('Missing name.', 'missing_required_parameter')]
          if (Object.keys(unknown).length > 0) return [400, error('Unknown parameter.', 'unknown_parameter')]
          const isLifetime =
            Number.isInteger(seconds) && Number(seconds) >= 1 && Number(seconds) <= 31_536_000
          if (seconds !== undefined && !isLifetime)
            return [400, error('Invalid expires_in_seconds.', 'integer_below_min_value')]
          const expiresAt = seconds === undefined ? null : Math.floor(Date.now() / 1000) + Number(seconds)
          const key = `sk-svcacct-${randomBytes(24).toString('base64url')}`
          const account = { id: nextId('user-'), name, project, key, expiresAt }
          accounts.set(account.id, account)
          const object = 'organization.project.service_account.api_key'
          const shownKey = {
            object,
            id: nextId('key_'),
            name: 'Secret Key',
            value: key,
            created_at: 1,
            expires_at: expiresAt,
          }
          return [200, { ...shown(account), api_key: shownKey }]
        }),
      'GET /v1/organization/projects/:project/service_accounts': (request) =>
        inProject(request, (project) => {
          const limit = Number(request.query.get('limit') ?? 20)
          if (!(limit >= 1 && limit <= 100)) return [400, error('Invalid limit.', 'integer_above_max_value')]
          const all = [...accounts.values()].filter((one) => one.project === project)
          const after = all.findIndex(({ id }) => id === request.query.get('after'))
          // Smaller pages than were asked for, so that there are several.
          const data = all.slice(after + 1, after + 1 + Math.min(limit, 2))
          const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
          return [
            200,
            { object: 'list', data: data.map(shown), ...ends, has_more: data.at(-1) !== all.at(-1) },
          ]
        }),
      'DELETE /v1/organization/projects/:project/service_accounts/:id': (request) =>
        inProject(request, (project) => {
          const account = accounts.get(request.parts[1] ?? '')
          if (account?.project !== project) return [404, error('No such service account.', null)]
          accounts.delete(account.id)
          return [
            200,
            { object: 'organization.project.service_account.deleted', id: account.id, deleted: true },
          ]
        }),
      'GET /v1/models': (request) => {
        const used = [...accounts.values()].find(({ key }) => hasBearer(request, key))
        const isOver = (used?.expiresAt ?? Number.POSITIVE_INFINITY) * 1000 < Date.now()
        return used === undefined || isOver ? UNAUTHORIZED : [200, { object: 'list', data: [] }]
      },
    },
    NOT_FOUND,
  )
  return { api, adminKey: ADMIN_KEY, accounts }
}
