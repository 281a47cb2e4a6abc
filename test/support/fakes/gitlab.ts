import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, nextId, startFakeApi } from './fake-api.ts'

const TOKEN = 'glpat-of-the-fake-0123456789'
const SCOPES =
  'api read_api create_runner read_repository write_repository read_registry write_registry'.split(' ')
const refusal = (message: string) => ({ message })

interface Token {
  readonly id: number
  readonly name: string
  readonly token: string
  readonly project: string
  readonly scopes: readonly string[]
  readonly access_level: number
  readonly expires_at: string
}

/** GitLab's project access tokens. */
export async function startGitLab(
  projects: readonly string[],
  { ownScopes = ['api'], username = 'mayfly' }: { ownScopes?: readonly string[]; username?: string } = {},
) {
  /** app/policies/project_policy.rb: `project_bot_access` prevents `create_resource_access_tokens`, and nothing else of tokens. */
  const isProjectBot = /^(group|project)_\d+_bot/.test(username)
  const tokens = new Map<number, Token>()
  const authenticated = ({ headers }: FakeRequest) => headers['private-token'] === TOKEN
  const inProject = (request: FakeRequest, answer: (project: string) => FakeReply): FakeReply => {
    if (!authenticated(request)) return [401, refusal('401 Unauthorized')]
    const [project = ''] = request.parts
    return projects.includes(project) ? answer(project) : [404, refusal('404 Project Not Found')]
  }
  const shown = ({ token: _, project: __, ...rest }: Token) => ({
    ...rest,
    revoked: false,
    active: true,
    user_id: 1,
  })
  const tomorrow = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
  const api = await startFakeApi(
    {
      'POST /api/v4/projects/:id/access_tokens': (request) =>
        inProject(request, (project) => {
          const { name, scopes, access_level: level = 40, expires_at: until } = request.json ?? {}
          if (isProjectBot)
            return [400, refusal('User does not have permission to create project access token')]
          if (typeof name !== 'string' || !Array.isArray(scopes))
            return [400, { error: 'name, scopes are missing' }]
          if (!scopes.every((one) => SCOPES.includes(one)))
            return [400, { error: 'scopes does not have a valid value' }]
          if (![10, 15, 20, 30, 40, 50].includes(Number(level)))
            return [400, { error: 'access_level is invalid' }]
          const isDay = /^\d{4}-\d\d-\d\d$/.test(String(until)) && String(until) >= tomorrow(0)
          if (!isDay || String(until) > tomorrow(365))
            return [400, refusal('Expiration date must be before a year')]
          const token = {
            id: Number.parseInt(nextId(), 36),
            name,
            token: `glpat-${randomBytes(20).toString('base64url')}`,
            project,
            scopes,
            access_level: Number(level),
            expires_at: String(until),
          }
          tokens.set(token.id, token)
          return [201, { ...shown(token), token: token.token }]
        }),
      'GET /api/v4/projects/:id/access_tokens': (request) =>
        inProject(request, (project) => {
          const search = request.query.get('search') ?? ''
          const here = [...tokens.values()].filter(
            (one) => one.project === project && one.name.includes(search),
          )
          const size = Math.min(Number(request.query.get('per_page') ?? 20), 100)
          const start = (Number(request.query.get('page') ?? 1) - 1) * size
          return [200, here.slice(start, start + size).map(shown)]
        }),
      'DELETE /api/v4/projects/:id/access_tokens/:token': (request) =>
        inProject(request, (project) => {
          const id = Number(request.parts[1])
          if (tokens.get(id)?.project !== project) return [404, refusal('404 Not Found')]
          tokens.delete(id)
          return [204]
        }),
      'GET /api/v4/personal_access_tokens/self': (request) =>
        authenticated(request)
          ? [200, { id: 1, scopes: ownScopes, active: true }]
          : [401, refusal('401 Unauthorized')],
      'GET /api/v4/user': (request) =>
        authenticated(request)
          ? [200, { id: 1, username, state: 'active' }]
          : [401, refusal('401 Unauthorized')],
      'GET /api/v4/projects/:id/repository/tree': ({ headers, parts }) => {
        const used = [...tokens.values()].find(({ token }) => token === headers['private-token'])
        return used?.project === parts[0] ? [200, []] : [401, refusal('401 Unauthorized')]
      },
    },
    [404, refusal('404 Not Found')],
  )
  return { api, token: TOKEN, tokens }
}
