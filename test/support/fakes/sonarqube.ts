import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, startFakeApi } from './fake-api.ts'

const TOKEN = 'squ_of-the-fake-0123456789'
const refusal = (msg: string) => ({ errors: [{ msg }] })
const basicUser = ({ headers }: FakeRequest) =>
  /^Basic /.test(headers.authorization ?? '')
    ? Buffer.from(String(headers.authorization).slice('Basic '.length), 'base64').toString().split(':')
    : []

interface Token {
  readonly name: string
  readonly token: string
  readonly project: string
  readonly expirationDate: string | undefined
}

/** SonarQube's user tokens; `now` is the time that the clock on its wall shows, read as UTC. The name of a token is its key. */
export async function startSonarQube(projects: readonly string[], now = () => Date.now()) {
  const tokens = new Map<string, Token>()
  const asUser = (request: FakeRequest, answer: (form: URLSearchParams) => FakeReply): FakeReply => {
    const [name, password] = basicUser(request)
    if (name !== TOKEN || password !== '') return [401]
    return answer(request.form ?? request.query)
  }
  const tomorrow = () => new Date(now() + 86_400_000).toISOString().slice(0, 10)
  const api = await startFakeApi(
    {
      'POST /api/user_tokens/generate': (request) =>
        asUser(request, (form) => {
          const name = form.get('name') ?? ''
          const project = form.get('projectKey') ?? ''
          const until = form.get('expirationDate') ?? undefined
          if (name === '' || name.length > 100)
            return [400, refusal("The 'name' parameter is missing or too long")]
          if (tokens.has(name)) return [400, refusal(`A user token with name '${name}' already exists`)]
          if (form.get('type') !== 'PROJECT_ANALYSIS_TOKEN')
            return [400, refusal("Value of parameter 'type' must be one of")]
          if (!projects.includes(project)) return [404, refusal(`Project '${project}' not found`)]
          if (until !== undefined && until < tomorrow())
            return [400, refusal(`The minimum value for parameter expirationDate is ${tomorrow()}.`)]
          const token = {
            name,
            token: `sqp_${randomBytes(20).toString('hex')}`,
            project,
            expirationDate: until,
          }
          tokens.set(name, token)
          return [200, { login: 'mayfly', createdAt: 'x', type: 'PROJECT_ANALYSIS_TOKEN', ...token }]
        }),
      // Answers so also where there is no such token.
      'POST /api/user_tokens/revoke': (request) =>
        asUser(request, (form) => {
          tokens.delete(form.get('name') ?? '')
          return [204]
        }),
      'GET /api/user_tokens/search': (request) =>
        asUser(request, () => [
          200,
          {
            login: 'mayfly',
            userTokens: [...tokens.values()].map(({ name, expirationDate }) => ({
              name,
              expirationDate,
              isExpired: false,
            })),
          },
        ]),
      'GET /api/authentication/check': (request) => {
        const [name] = basicUser(request)
        return [...tokens.values()].some(({ token }) => token === name) ? [200, { valid: true }] : [401]
      },
    },
    [404, refusal('Unknown url')],
  )
  return { api, token: TOKEN, tokens }
}
