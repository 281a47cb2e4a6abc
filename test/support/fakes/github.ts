import { generateKeyPairSync, randomBytes, verify } from 'node:crypto'
import { type FakeReply, type FakeRequest, startFake } from './fake-server.ts'
import description from './github-openapi.json' with { type: 'json' }
import { readOpenApi } from './openapi.ts'

const api = readOpenApi(description)
type Json = Record<string, unknown>
type Levels = Record<string, string>

interface FakeToken {
  readonly installation: FakeInstallation
  readonly permissions: Levels
  /** `undefined`: all of the installation. */
  readonly repositories: readonly string[] | undefined
  readonly expiresAt: number
}

export interface FakeInstallation {
  readonly id: number
  readonly account: { readonly login: string; readonly type: 'Organization' | 'User' }
  permissions: Levels
  repositories: string[]
  suspended: boolean
}

const RANK = ['read', 'write', 'admin']
const HOUR_MS = 3_600_000

/** Where an Enterprise Server has the API, which is the same. */
const atRoot = (request: FakeRequest): FakeRequest => ({
  ...request,
  line: request.line.replace(/^(\w+) \/api\/v3\//, '$1 /'),
})

/** Checks what api.github.com checks, by its OpenAPI description where that says something. */
export async function startGitHub(tls?: { cert: string; key: string }) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const app = { id: 4711, client_id: 'Iv23liFake', slug: 'mayfly' }
  const installations: FakeInstallation[] = []
  const tokens = new Map<string, FakeToken>()
  const clock = { aheadMs: 0 }
  const now = () => Date.now() + clock.aheadMs

  /** "Generating a JSON Web Token (JWT) for a GitHub App". */
  function jwtFault(bearer: string): string | undefined {
    const [head = '', payload = '', signature = ''] = bearer.split('.')
    const decode = (part: string): Json => JSON.parse(Buffer.from(part, 'base64url').toString())
    const isSigned = () =>
      verify('sha256', Buffer.from(`${head}.${payload}`), publicKey, Buffer.from(signature, 'base64url'))
    if (signature === '' || decode(head)['alg'] !== 'RS256' || !isSigned()) {
      return 'A JSON web token could not be decoded'
    }
    const { iss, iat, exp } = decode(payload)
    const seconds = Math.floor(now() / 1000)
    if (String(iss) !== String(app.id) && iss !== app.client_id) return 'Integration not found'
    if (!Number.isInteger(iat) || Number(iat) > seconds)
      return `'Issued at' claim ('iat') must be in the past`
    if (!Number.isInteger(exp) || Number(exp) <= seconds) return `'Expiration time' claim ('exp') is past`
    if (Number(exp) > seconds + 600) return `'Expiration time' claim ('exp') is too far in the future`
    return undefined
  }

  const installationBody = (one: FakeInstallation): Json => ({
    ...api.sample('installation'),
    id: one.id,
    account: { ...api.sample('simple-user'), login: one.account.login, type: one.account.type },
    app_id: app.id,
    app_slug: app.slug,
    permissions: one.permissions,
    repository_selection: 'selected',
    target_type: one.account.type,
    suspended_at: one.suspended ? '2026-01-01T00:00:00Z' : null,
  })

  const repositoryBody = (schema: string, owner: string, name: string): Json => ({
    ...api.sample(schema),
    name,
    full_name: `${owner}/${name}`,
    private: true,
    // As long as a real one, which has some forty addresses.
    description: 'x'.repeat(5_000),
  })

  function createToken(id: number, text: string): FakeReply {
    const one = installations.find((installation) => installation.id === id)
    if (one === undefined) return message(404, 'Not Found')
    if (one.suspended) return message(403, 'This installation has been suspended')
    const body = JSON.parse(text === '' ? '{}' : text) as { repositories?: string[]; permissions?: Levels }
    api.checkRequest('/app/installations/{installation_id}/access_tokens', 'post', body)
    const { repositories, permissions = one.permissions } = body
    if (repositories !== undefined && repositories.length > 500) return message(422, 'Too many repositories')
    const known = one.repositories.map((name) => name.toLowerCase())
    if (repositories?.some((name) => !known.includes(name.toLowerCase()))) {
      return message(
        422,
        'There is at least one repository that does not exist or is not accessible to the parent installation.',
      )
    }
    const isTooMuch = ([name, level]: [string, string]) =>
      RANK.indexOf(level) > RANK.indexOf(one.permissions[name] ?? '')
    if (Object.entries(permissions).some(isTooMuch)) {
      return message(422, 'The permissions requested are not granted to this installation.')
    }
    // The stateless format since April 2026 is far longer than 40 characters.
    const token = `ghs_${app.id}_${randomBytes(200).toString('base64url')}`
    const granted = { metadata: 'read', ...permissions }
    const expiresAt = Math.floor((now() + HOUR_MS) / 1000) * 1000
    tokens.set(token, { installation: one, permissions: granted, repositories, expiresAt })
    return {
      status: 201,
      body: {
        token,
        expires_at: new Date(expiresAt).toISOString().replace('.000', ''),
        permissions: granted,
        repository_selection: 'selected',
        ...(repositories && {
          repositories: repositories.map((name) => repositoryBody('repository', one.account.login, name)),
        }),
      },
    }
  }

  function asApp({ line, body }: FakeRequest): [path: string, FakeReply] | undefined {
    const byLogin = (login: string, type: string) => {
      const one = installations.find(
        ({ account }) => account.type === type && account.login.toLowerCase() === login.toLowerCase(),
      )
      return one === undefined ? message(404, 'Not Found') : { status: 200, body: installationBody(one) }
    }
    if (line === 'GET /app') {
      return ['/app', { status: 200, body: { ...api.sample('integration'), ...app, node_id: 'A_1' } }]
    }
    if (line === 'GET /app/installations')
      return ['/app/installations', { status: 200, body: installations.map(installationBody) }]
    const [, kind, login] = /^GET \/(orgs|users)\/([^/]+)\/installation$/.exec(line) ?? []
    if (kind === 'orgs') return ['/orgs/{org}/installation', byLogin(login ?? '', 'Organization')]
    if (kind === 'users') return ['/users/{username}/installation', byLogin(login ?? '', 'User')]
    const [, method, id, rest] = /^(GET|POST) \/app\/installations\/(\d+)(\/access_tokens)?$/.exec(line) ?? []
    if (method === 'GET' && rest === undefined) {
      const one = installations.find((installation) => installation.id === Number(id))
      const reply =
        one === undefined ? message(404, 'Not Found') : { status: 200, body: installationBody(one) }
      return ['/app/installations/{installation_id}', reply]
    }
    if (method === 'POST' && rest !== undefined) {
      return ['/app/installations/{installation_id}/access_tokens', createToken(Number(id), body)]
    }
    return undefined
  }

  const may = ({ permissions }: FakeToken, name: string, level: string) =>
    RANK.indexOf(permissions[name] ?? '') >= RANK.indexOf(level)

  function asInstallation(request: FakeRequest, token: FakeToken): [path: string, FakeReply] | undefined {
    const { installation } = token
    const names = token.repositories ?? installation.repositories
    const owner = installation.account.login
    if (request.line === 'GET /installation/repositories') {
      const [page, size] = ['page', 'per_page'].map((name) => Number(request.url.searchParams.get(name)))
      const from = ((page || 1) - 1) * (size || 30)
      const some = names.slice(from, from + Math.min(size || 30, 100))
      const body = {
        total_count: names.length,
        repository_selection: 'selected',
        repositories: some.map((name) => repositoryBody('repository', owner, name)),
      }
      return ['/installation/repositories', { status: 200, body }]
    }
    const [, method, account = '', repo = '', rest = ''] =
      /^(GET|POST) \/repos\/([^/]+)\/([^/]+)(\/.*)?$/.exec(request.line) ?? []
    const isInside = account.toLowerCase() === owner.toLowerCase() && names.includes(repo)
    const forbidden = message(403, 'Resource not accessible by integration')
    const path = `/repos/{owner}/{repo}${rest === '/git/ref/heads/main' ? '/git/ref/{ref}' : rest}`
    if (!isInside || method === undefined) return [path, message(404, 'Not Found')]
    if (rest === '') return [path, { status: 200, body: repositoryBody('full-repository', owner, repo) }]
    const needed = {
      '/git/ref/heads/main': 'contents:read',
      '/git/refs': 'contents:write',
      '/labels': 'issues:write',
    }
    const [permission = '', level = ''] = (needed[rest as keyof typeof needed] ?? '').split(':')
    if (permission === '') return undefined
    if (!may(token, permission, level)) return [path, forbidden]
    const schema = permission === 'issues' ? 'label' : 'git-ref'
    return [path, { status: method === 'GET' ? 200 : 201, body: api.sample(schema) }]
  }

  function answer(request: FakeRequest): FakeReply {
    const { headers, line } = request
    if ((headers['user-agent'] ?? '') === '')
      return { status: 403, body: 'Please make sure your request has a User-Agent header' }
    const version = headers['x-github-api-version']
    if (version !== undefined && !['2022-11-28', '2026-03-10'].includes(String(version))) {
      return message(400, 'Not a supported version')
    }
    // gh sends an empty one.
    if (
      headers.accept !== '' &&
      !/^application\/(vnd\.github(\.v3)?\+)?json|\*\/\*/.test(headers.accept ?? '')
    )
      return message(415, 'Unsupported Accept')
    const bearer = /^(?:bearer|token) (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
    const isApp = / \/(app|orgs\/[^/]+\/installation|users\/[^/]+\/installation)/.test(line)
    if (isApp) {
      const fault = jwtFault(bearer)
      if (fault !== undefined) return message(fault === 'Integration not found' ? 404 : 401, fault)
      return checked(request, asApp(request))
    }
    const token = tokens.get(bearer)
    if (token === undefined || token.expiresAt <= now()) return message(401, 'Bad credentials')
    if (token.installation.suspended) return message(403, 'This installation has been suspended')
    // It is that of nobody ("Endpoints available for GitHub App installation access tokens").
    if (line === 'GET /user') return message(403, 'Resource not accessible by integration')
    if (line === 'DELETE /installation/token') {
      tokens.delete(bearer)
      return checked(request, ['/installation/token', { status: 204 }])
    }
    return checked(request, asInstallation(request, token))
  }

  const server = await startFake((request) => answer(atRoot(request)), tls)
  return {
    ...server,
    app,
    clock,
    tokens,
    privateKey: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    install(login: string, more: Partial<Omit<FakeInstallation, 'id' | 'account'>> & { type?: 'User' } = {}) {
      const { type = 'Organization', ...rest } = more
      const one: FakeInstallation = {
        id: 1000 + installations.length,
        account: { login, type },
        permissions: { contents: 'write', issues: 'write', metadata: 'read', members: 'write' },
        repositories: ['web', 'web-docs', 'api'],
        suspended: false,
        ...rest,
      }
      installations.push(one)
      return one
    },
  }
}

function checked({ method }: FakeRequest, found: [path: string, FakeReply] | undefined): FakeReply {
  if (found === undefined) return message(404, 'Not Found')
  const [path, reply] = found
  api.checkReply(path, method.toLowerCase(), reply.status, reply.body)
  return reply
}

function message(status: number, text: string): FakeReply {
  return {
    status,
    body: { message: text, documentation_url: 'https://docs.github.com/rest', status: String(status) },
  }
}
