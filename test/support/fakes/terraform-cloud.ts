import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, nextId, startFakeApi } from './fake-api.ts'

const TOKEN = 'fake.atlasv1.0123456789'
const JSON_API = 'application/vnd.api+json'
const refusal = (status: number, title: string) => ({ errors: [{ status: String(status), title }] })

interface Token {
  readonly id: string
  readonly team: string
  readonly description: string
  readonly token: string
  readonly until: string | null
}

/** HCP Terraform's team tokens. */
export async function startTerraformCloud(organization: string, teams: readonly string[]) {
  const tokens = new Map<string, Token>()
  const asOwner = (request: FakeRequest, answer: () => FakeReply): FakeReply =>
    hasBearer(request, TOKEN) ? answer() : [401, refusal(401, 'unauthorized')]
  const shown = ({ id, team, description, until }: Token, token: string | null = null) => ({
    id,
    type: 'authentication-tokens',
    attributes: {
      description,
      token,
      'created-at': '2026-01-01T00:00:00.000Z',
      'last-used-at': null,
      'expired-at': until,
    },
    relationships: { team: { data: { id: team, type: 'teams' } } },
  })
  const api = await startFakeApi(
    {
      'POST /api/v2/teams/:team/authentication-tokens': (request) =>
        asOwner(request, () => {
          if (request.headers['content-type'] !== JSON_API)
            return [415, refusal(415, 'unsupported media type')]
          const [team = ''] = request.parts
          if (!teams.includes(team)) return [404, refusal(404, 'not found')]
          const { type, attributes } = (request.json?.['data'] ?? {}) as {
            type?: string
            attributes?: Record<string, string>
          }
          if (type !== 'authentication-tokens') return [422, refusal(422, 'invalid type')]
          const description = attributes?.['description'] ?? ''
          const isTaken = [...tokens.values()].some(
            (one) => one.team === team && one.description === description,
          )
          if (description === '' || isTaken) return [422, refusal(422, 'description is invalid or taken')]
          const until = attributes?.['expired-at'] ?? null
          const token = {
            id: nextId('at-'),
            team,
            description,
            token: `${randomBytes(8).toString('hex')}.atlasv1.${randomBytes(32).toString('hex')}`,
            until,
          }
          tokens.set(token.id, token)
          return [201, { data: shown(token, token.token) }]
        }),
      'GET /api/v2/organizations/:organization/team-tokens': (request) =>
        asOwner(request, () => {
          if (request.parts[0] !== organization) return [404, refusal(404, 'not found')]
          const size = Math.min(Number(request.query.get('page[size]') ?? 20), 100)
          const start = (Number(request.query.get('page[number]') ?? 1) - 1) * size
          return [200, { data: [...tokens.values()].slice(start, start + size).map((one) => shown(one)) }]
        }),
      'DELETE /api/v2/authentication-tokens/:id': (request) =>
        asOwner(request, () =>
          tokens.delete(request.parts[0] ?? '') ? [204] : [404, refusal(404, 'not found')],
        ),
      'GET /api/v2/organizations': (request) => {
        const used = [...tokens.values()].find(({ token }) => hasBearer(request, token))
        return used === undefined ? [401, refusal(401, 'unauthorized')] : [200, { data: [] }]
      },
    },
    [404, refusal(404, 'not found')],
  )
  return { api, token: TOKEN, tokens }
}
