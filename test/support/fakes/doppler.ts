import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, hasBearer, nextId, startFakeApi } from './fake-api.ts'

const TOKEN = 'dp.sa.of-the-fake-0123456789'
const refusal = (message: string) => ({ messages: [message], success: false })

interface Token {
  readonly slug: string
  readonly name: string
  readonly key: string
  readonly project: string
  readonly config: string
  readonly access: string
  readonly expires_at: string | null
}

/** Doppler's service tokens. `configs` are of the form `project/config`. */
export async function startDoppler(configs: readonly string[]) {
  const tokens = new Map<string, Token>()
  const inConfig = (
    request: FakeRequest,
    given: Readonly<Record<string, unknown>>,
    answer: (place: { project: string; config: string }) => FakeReply,
  ): FakeReply => {
    if (!hasBearer(request, TOKEN)) return [401, refusal('Invalid Auth token')]
    const project = String(given['project'])
    const config = String(given['config'])
    if (!configs.includes(`${project}/${config}`))
      return [404, refusal(`Could not find requested config '${config}'`)]
    return answer({ project, config })
  }
  const shown = ({ key: _, access: __, ...token }: Token) => ({
    ...token,
    environment: token.config,
    created_at: 'x',
  })
  const api = await startFakeApi(
    {
      'POST /v3/configs/config/tokens': (request) =>
        inConfig(request, request.json ?? {}, ({ project, config }) => {
          const { name, access = 'read', expire_at: until = null } = request.json ?? {}
          if (typeof name !== 'string' || name === '') return [400, refusal('name is required')]
          if (access !== 'read' && access !== 'read/write')
            return [400, refusal('access must be one of [read, read/write]')]
          if (until !== null && !(Date.parse(String(until)) > Date.now()))
            return [400, refusal('expire_at must be in the future')]
          const key = `dp.st.${config}.${randomBytes(30).toString('base64url')}`
          const token = {
            slug: nextId('slug-'),
            name,
            key,
            project,
            config,
            access,
            expires_at: until as string | null,
          }
          tokens.set(token.slug, token)
          return [200, { token: { ...shown(token), key, access }, success: true }]
        }),
      'GET /v3/configs/config/tokens': (request) =>
        inConfig(request, Object.fromEntries(request.query), ({ project, config }) => {
          const here = [...tokens.values()].filter((one) => one.project === project && one.config === config)
          return [200, { tokens: here.map(shown), success: true }]
        }),
      'DELETE /v3/configs/config/tokens/token': (request) =>
        inConfig(request, request.json ?? {}, ({ project, config }) => {
          const token = tokens.get(String(request.json?.['slug']))
          if (token?.project !== project || token.config !== config)
            return [404, refusal('Could not find requested token')]
          tokens.delete(token.slug)
          return [204]
        }),
      'GET /v3/me': (request) =>
        hasBearer(request, TOKEN)
          ? [200, { workplace: { name: 'Acme', slug: 'a1b2c3' }, type: 'service_account', slug: 'x' }]
          : [401, refusal('Invalid Auth token')],
      'GET /v3/configs/config/secrets': (request) => {
        const used = [...tokens.values()].find(({ key }) => hasBearer(request, key))
        const isOver = used?.expires_at !== null && Date.parse(used?.expires_at ?? '') < Date.now()
        if (used === undefined || isOver) return [401, refusal('Invalid Service token')]
        return [200, { secrets: {}, success: true }]
      },
    },
    [404, refusal('Not found')],
  )
  return { api, token: TOKEN, tokens }
}
