import { randomBytes } from 'node:crypto'
import { type FakeReply, type FakeRequest, nextId, startFakeApi } from './fake-api.ts'

const LOGIN = { username: 'mayfly', password: 'password-of-the-fake' }
const PRIVILEGES =
  'read write view_index_metadata create_doc auto_configure index create delete monitor all'.split(' ')
const refusal = (status: number, reason: string) => ({
  error: { type: 'security_exception', reason },
  status,
})

interface Key {
  readonly id: string
  readonly name: string
  readonly encoded: string
  readonly expiration: number | undefined
  readonly indices: readonly unknown[]
  invalidated: boolean
}

/** Elasticsearch's API keys of one user. */
export async function startElasticsearch(hasPrivilege = true) {
  const keys = new Map<string, Key>()
  const expected = `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')}`
  const asUser = (request: FakeRequest, answer: () => FakeReply): FakeReply =>
    request.headers.authorization === expected ? answer() : [401, refusal(401, 'unable to authenticate user')]
  const api = await startFakeApi(
    {
      'POST /_security/api_key': (request) =>
        asUser(request, () => {
          const { name, expiration, role_descriptors: roles } = request.json ?? {}
          if (typeof name !== 'string' || !/^(?!_)[\x20-\x7e]{1,256}$/.test(name))
            return [400, refusal(400, 'api key name is invalid')]
          const [, seconds] = /^(\d+)s$/.exec(String(expiration)) ?? []
          if (seconds === undefined) return [400, refusal(400, 'failed to parse expiration')]
          const indices = Object.values(
            (roles ?? {}) as Record<string, { indices?: { names: string[]; privileges: string[] }[] }>,
          ).flatMap((role) => role.indices ?? [])
          const areSound = indices.every(
            (one) =>
              one.names.length > 0 && one.privileges.every((privilege) => PRIVILEGES.includes(privilege)),
          )
          // Without role descriptors a key has all that its owner has.
          if (indices.length === 0 || !areSound) return [400, refusal(400, 'unknown index privilege')]
          const id = nextId('id')
          const secret = randomBytes(16).toString('base64url')
          const encoded = Buffer.from(`${id}:${secret}`).toString('base64')
          const key = {
            id,
            name,
            encoded,
            expiration: Date.now() + Number(seconds) * 1000,
            indices,
            invalidated: false,
          }
          keys.set(id, key)
          return [200, { id, name, expiration: key.expiration, api_key: secret, encoded }]
        }),
      'DELETE /_security/api_key': (request) =>
        asUser(request, () => {
          const { name, owner } = request.json ?? {}
          if (owner !== true) return [403, refusal(403, 'action is unauthorized: manage_api_key')]
          const found = [...keys.values()].filter((one) => one.name === name)
          const live = found.filter(({ invalidated }) => !invalidated)
          for (const key of live) key.invalidated = true
          const before = found.filter((one) => !live.includes(one)).map(({ id }) => id)
          return [
            200,
            {
              invalidated_api_keys: live.map(({ id }) => id),
              previously_invalidated_api_keys: before,
              error_count: 0,
            },
          ]
        }),
      'GET /_security/api_key': (request) =>
        asUser(request, () => {
          const prefix = (request.query.get('name') ?? '').replace(/\*$/, '')
          const isActive = request.query.get('active_only') === 'true'
          const found = [...keys.values()].filter(
            (one) => one.name.startsWith(prefix) && !(isActive && one.invalidated),
          )
          return [
            200,
            {
              api_keys: found.map(({ encoded: _, indices: __, ...key }) => ({
                ...key,
                username: LOGIN.username,
              })),
            },
          ]
        }),
      'POST /_security/user/_has_privileges': (request) =>
        asUser(request, () => [
          200,
          { has_all_requested: hasPrivilege, cluster: { manage_own_api_key: hasPrivilege } },
        ]),
      'GET /_security/_authenticate': ({ headers }) => {
        const used = [...keys.values()].find(({ encoded }) => headers.authorization === `ApiKey ${encoded}`)
        return used === undefined || used.invalidated ? [401, refusal(401, 'invalid API key')] : [200, {}]
      },
    },
    [404, refusal(404, 'no handler found')],
  )
  return { api, login: LOGIN, keys }
}
