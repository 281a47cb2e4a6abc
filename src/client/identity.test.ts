import { afterEach, describe, expect, test } from 'vitest'
import { json, problem, scripted, thrown } from '../../test/support/scripted-server.ts'
import { type AccessToken, createClient } from './client.ts'

let close: (() => Promise<unknown>) | undefined
afterEach(() => close?.())

const granted = (name: string, scope = 'demo') =>
  json(200, { access_token: name, token_type: 'Bearer', expires_in: 600, scope })
const status = json(200, { id: 'agent_1', name: 'ci', scopes: [], pending_requests: [] })

/** A client whose platform signs `jwt-1`, `jwt-2` and so on; `kept` is what its cache holds. */
async function open(...answers: Parameters<typeof scripted>) {
  const server = await scripted(...answers)
  close = server.close
  let signed = 0
  const cache: { kept: AccessToken | undefined } = { kept: undefined }
  const client = createClient({
    server: server.url,
    retries: 1,
    auth: {
      kind: 'identity',
      token: async () => {
        signed += 1
        return `jwt-${signed}`
      },
    },
    tokens: {
      load: async () => cache.kept,
      save: async (token) => {
        cache.kept = token
      },
    },
  })
  const shown = () =>
    server.seen.flatMap(({ url, body }) =>
      url === '/oauth/token' ? [new URLSearchParams(body).get('subject_token')] : [],
    )
  return { client, seen: server.seen, shown, cache }
}

describe('a login by an identity', () => {
  test('is an exchange of its token, without a client', async () => {
    const { client, seen } = await open(granted('a'), status)
    await client.status()
    expect(Object.fromEntries(new URLSearchParams(seen[0]?.body))).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'jwt-1',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
    expect(seen[0]?.headers.authorization).toBeUndefined()
    expect(seen[1]?.headers.authorization).toBe('Bearer a')
  })

  test('takes a new token for each try and each access token', async () => {
    const { client, shown } = await open(
      problem(503, 'store_unavailable'),
      granted('a'),
      problem(401, 'unauthorized'),
      granted('b'),
      status,
    )
    await client.status()
    expect(shown()).toEqual(['jwt-1', 'jwt-2', 'jwt-3'])
  })

  test('asks for scopes and an audience of the access token', async () => {
    const { client, seen } = await open(granted('a'))
    await client.token({ scopes: ['openid', 'demo'], audience: 'https://other.example' })
    expect(Object.fromEntries(new URLSearchParams(seen[0]?.body))).toMatchObject({
      scope: 'openid demo',
      audience: 'https://other.example',
    })
  })

  test('a refused scope is what the caller hears of, and costs no access token', async () => {
    const used = json(400, { error: 'invalid_grant', error_description: 'No.' })
    const { client, cache } = await open(granted('a'), status, problem(403, 'scope_not_allowed'), used)
    await client.status()
    expect(await thrown(client.issue({ backend: 'demo' }))).toMatchObject({ code: 'scope_not_allowed' })
    expect(cache.kept?.token).toBe('a')
  })

  test('new scopes come with another login', async () => {
    const { client } = await open(
      granted('a'),
      status,
      problem(403, 'scope_not_allowed'),
      granted('b', 'demo more'),
      json(200, { id: 'cred_1', token: 's' }),
    )
    await client.status()
    expect(await client.issue({ backend: 'more' })).toMatchObject({ id: 'cred_1' })
  })

  test('ends with logOut', async () => {
    const { client, seen } = await open(granted('a'), (_, response) => void response.writeHead(204).end())
    await client.logOut()
    expect(seen[1]).toMatchObject({ method: 'DELETE', url: '/v1/login' })
  })
})
