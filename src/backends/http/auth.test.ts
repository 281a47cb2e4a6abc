import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { type Acme, made, openAcme, SECRET } from '../../../test/support/fakes/acme.ts'
import type { FakeApi, FakeRequest } from '../../../test/support/fakes/fake-api.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { createAuth } from './auth.ts'
import type { Send } from './calls.ts'
import type { Recipe } from './schema.ts'

let api: FakeApi
let seen: FakeRequest[] = []
afterEach(() => api?.close())

async function open(...given: Parameters<typeof openAcme>): Promise<Acme['backend']> {
  const acme = await openAcme(...given)
  api = acme.api
  seen = acme.seen
  return acme.backend
}

describe('a login', () => {
  const login = {
    request: 'POST /login',
    json: { user: 'x', password: '{token}' },
    token: '/token',
    expires_in: '/seconds',
  }

  test('happens once for all that need it, and again when the upstream forgot it', async () => {
    let current = 0
    const backend = await open(
      { auth: { login } },
      {
        'POST /login': () => {
          current += 1
          return [200, { token: `session-${current}`, seconds: 3600 }]
        },
        'POST /teams/:team/keys': ({ headers }) =>
          headers.authorization === `Bearer session-${current}` ? [201, { id: 1, key: SECRET }] : [401, {}],
      },
    )
    await Promise.all(Array.from({ length: 5 }, () => backend.issue(newRequest(['a']), never())))
    expect(current).toBe(1)
    current = 9
    await backend.issue(newRequest(['a']), never())
    expect(current).toBe(10)
  })

  test('that is refused is denied, and nothing is created', async () => {
    const backend = await open(
      { auth: { login } },
      { 'POST /login': () => [401, {}], 'POST /teams/:team/keys': made },
    )
    await expect(backend.issue(newRequest(['a']), never())).rejects.toMatchObject({ fault: 'denied' })
    expect(api.seen).toEqual(['POST /login'])
  })

  test('of several callers is not waited for by one who gives up', async () => {
    const asked = Promise.withResolvers<Awaited<ReturnType<Send>>>()
    const recipe = { title: 'Acme', auth: { login } } as unknown as Recipe
    const auth = createAuth(recipe, { token: 'x' }, createTestHost('acme').host, () => asked.promise)
    const impatient = new AbortController()
    const [one, other] = [auth.headers(impatient.signal), auth.headers(never())]
    impatient.abort()
    await expect(one).rejects.toMatchObject({ fault: 'timeout' })
    asked.resolve({ json: () => ({ token: 'session', seconds: 60 }) } as Awaited<ReturnType<Send>>)
    expect(await other).toEqual({ authorization: 'Bearer session' })
  })

  test('by client credentials sends the client as RFC 6749 §2.3.1 says', async () => {
    const oauth = { request: 'POST /token', client_id: 'a:b', client_secret: '{token}', scope: 'keys' }
    const backend = await open(
      { auth: { oauth } },
      {
        'POST /token': () => [200, { access_token: 'x', expires_in: 60 }],
        'POST /teams/:team/keys': made,
      },
      { token: 'p ä' },
    )
    await backend.issue(newRequest(['a']), never())
    expect(seen[0]?.headers.authorization).toBe(`Basic ${Buffer.from('a%3Ab:p+%C3%A4').toString('base64')}`)
    expect(Object.fromEntries(seen[0]?.form ?? [])).toEqual({
      grant_type: 'client_credentials',
      scope: 'keys',
    })
  })

  test('by a signed JWT', async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const jwt = {
      algorithm: 'ES256',
      key: '{token}',
      key_id: 'k1',
      lifetime: '5m',
      claims: { iss: 'mayfly', aud: ['{base_url}'] },
    }
    const backend = await open(
      { auth: { jwt } },
      { 'POST /teams/:team/keys': made },
      { token: await exportPKCS8(privateKey) },
    )
    await backend.issue(newRequest(['a']), never())
    const token = String(seen[0]?.headers.authorization).slice('Bearer '.length)
    const { payload, protectedHeader } = await jwtVerify(token, publicKey, {
      issuer: 'mayfly',
      audience: `${api.url}/`,
    })
    expect(protectedHeader).toMatchObject({ kid: 'k1', alg: 'ES256' })
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300)
  })

  test('with a key that cannot sign is misconfigured', async () => {
    const jwt = { algorithm: 'RS256', key: '{token}', lifetime: '5m', claims: {} }
    const backend = await open({ auth: { jwt } }, {})
    await expect(backend.check(never())).rejects.toMatchObject({ fault: 'misconfigured' })
  })
})
