import { afterEach, describe, expect, test } from 'vitest'
import { never, newCredentialId, newRequest } from '../../../test/contract/open-kind.ts'
import { type Acme, made, nothing, openAcme, RECIPE, SECRET } from '../../../test/support/fakes/acme.ts'
import type { FakeApi, FakeRequest } from '../../../test/support/fakes/fake-api.ts'

let api: FakeApi
let seen: FakeRequest[] = []
afterEach(() => api?.close())

async function open(...given: Parameters<typeof openAcme>): Promise<Acme['backend']> {
  const acme = await openAcme(...given)
  api = acme.api
  seen = acme.seen
  return acme.backend
}

describe('what is sent', () => {
  test('a hostile name of an agent stays a value in JSON', async () => {
    const backend = await open({}, { 'POST /teams/:team/keys': made })
    const name = '","role":"admin"}{name}\r\nX-Admin: 1'
    await backend.issue({ ...newRequest(['a']), agent: { id: 'ag_1', name } }, never())
    expect(seen[0]?.json).toEqual({
      label: expect.stringMatching(/^mf_/),
      by: `for ${name}`,
      scopes: [{ team: 'a' }],
    })
    expect(seen[0]?.headers).toMatchObject({
      'x-agent': 'ag_1',
      'x-team': 'mayfly',
      authorization: 'Bearer t0ken',
    })
  })

  test('a header refuses what could begin another one, before anything is sent', async () => {
    const backend = await open({}, { 'POST /teams/:team/keys': made })
    const request = { ...newRequest(['a']), agent: { id: 'x\r\nX-Admin: 1', name: 'x' } }
    await expect(backend.issue(request, never())).rejects.toMatchObject({ fault: 'unsupported' })
    expect(seen).toEqual([])
  })

  test.each(['..', '.', '../a', 'a/b', 'c', 'a:b', 'A', '*'])(
    'the scope %j reaches no other place',
    async (scope) => {
      const backend = await open({}, { 'POST /teams/:team/keys': made })
      await expect(backend.issue(newRequest([scope]), never())).rejects.toMatchObject({
        fault: 'unsupported',
      })
      expect(api.seen).toEqual([])
    },
  )

  test.each([[[]], [['a', 'b']]])('the scopes %j are not one credential', async (scopes) => {
    const backend = await open({}, { 'POST /teams/:team/keys': made })
    await expect(backend.issue(newRequest(scopes), never())).rejects.toMatchObject({ fault: 'unsupported' })
    expect(api.seen).toEqual([])
  })

  test('without "local", plain http and loopback are refused', async () => {
    await expect(open({}, {}, { local: false })).rejects.toMatchObject({ fault: 'misconfigured' })
  })
})

describe('an issue of several requests', () => {
  const two = {
    issue: {
      ...RECIPE.issue,
      requests: [
        { request: 'POST /teams/{team}/keys', json: { label: '{name}' }, take: { account: '/id' } },
        { request: 'POST /accounts/{account}/key' },
      ],
      handle: { id: '{account}', team: '{team}' },
    },
  }

  test('uses what the first reply gave', async () => {
    const backend = await open(two, {
      'POST /teams/:team/keys': made,
      'POST /accounts/:id/key': () => [200, { key: SECRET }],
    })
    expect(await backend.issue(newRequest(['a']), never())).toMatchObject({
      secret: SECRET,
      handle: { id: '7', team: 'a' },
    })
  })

  test.each([400, 401, 403, 404, 409, 500])(
    'a %i to the second leaves the rest to revocation',
    async (status) => {
      const backend = await open(two, {
        'POST /teams/:team/keys': made,
        'POST /accounts/:id/key': () => [status, {}],
      })
      await expect(backend.issue(newRequest(['a']), never())).rejects.toMatchObject({ fault: 'unavailable' })
    },
  )

  test.each([
    [400, 'misconfigured'],
    [403, 'denied'],
    [409, 'misconfigured'],
    [429, 'unavailable'],
  ])('a %i to the first is %s', async (status, fault) => {
    const backend = await open(two, { 'POST /teams/:team/keys': () => [status, {}] })
    await expect(backend.issue(newRequest(['a']), never())).rejects.toMatchObject({ fault })
  })
})

describe('a revocation', () => {
  const id = newCredentialId()
  const name = `mf_${id.slice('cred_'.length)}`

  test('finds by name, on any page of any place, what only the reply named', async () => {
    const deleted: string[][] = []
    const pages: Record<string, object> = {
      a: { keys: [{ id: 1, label: 'other' }], next: null },
      b: { keys: [{ id: 2, label: 'mf_x' }], next: 'p2' },
      p2: { keys: [{ id: 3, label: name }], next: null },
    }
    const list = { ...RECIPE.list, query: { after: '{after}' }, next: { cursor: '/next' } }
    const backend = await open(
      { list },
      {
        'GET /teams/:team/keys': ({ parts, query }) => [200, pages[query.get('after') ?? parts[0] ?? '']],
        'DELETE /teams/:team/keys/:id': ({ parts }) => {
          deleted.push([...parts])
          return [204]
        },
      },
    )
    await backend.revoke?.(backend.recover?.(id) ?? {}, never())
    expect(deleted).toEqual([['b', '3']])
  })

  test('believes "not found" only where the list can be read', async () => {
    let status = 404
    const backend = await open(
      {},
      { 'GET /teams/:team/keys': () => (status === 200 ? [200, { keys: [] }] : [status, {}]) },
    )
    const handle = { name, id: 7, team: 'b' }
    await expect(backend.revoke?.(handle, never())).rejects.toMatchObject({ fault: 'misconfigured' })
    status = 200
    await backend.revoke?.(handle, never())
    expect(api.seen.at(-1)).toBe('GET /teams/b/keys')
  })

  test.each(['admin', 'mf_', 'mf_../../x', `${name}x`, ''])(
    'never ends an account called %j',
    async (other) => {
      const backend = await open(
        {},
        { 'GET /teams/:team/keys': nothing, 'DELETE /teams/:team/keys/:id': () => [204] },
      )
      await expect(backend.revoke?.({ name: other, id: 7, team: 'a' }, never())).rejects.toMatchObject({
        fault: 'misconfigured',
      })
      expect(api.seen).toEqual([])
    },
  )

  test('ends nothing as another login than the one that made it, and says so', async () => {
    let login = 'ours'
    const deleted: string[] = []
    const routes = {
      'GET /me': () => [200, { login }] as const,
      'POST /teams/:team/keys': made,
      'GET /teams/:team/keys': nothing,
      'DELETE /teams/:team/keys/:id': ({ parts }: FakeRequest) => {
        deleted.push(parts.join('/'))
        return [204] as const
      },
    }
    const identity = { request: 'GET /me', at: '/login' }
    const first = await open({ identity }, routes)
    const { handle = {} } = await first.issue(newRequest(['a']), never())
    expect(handle).toMatchObject({ identity: 'ours' })
    await api.close()
    login = 'theirs'
    const second = await open({ identity }, routes)
    await expect(second.revoke?.(handle, never())).rejects.toMatchObject({ fault: 'misconfigured' })
    expect(deleted).toEqual([])
    await api.close()
    login = 'ours'
    const third = await open({ identity }, routes)
    await third.revoke?.(handle, never())
    expect(deleted).toEqual(['a/7'])
  })

  test('a login that may not ask whose it is works, with a warning', async () => {
    const identity = { request: 'GET /me', at: '/login' }
    const backend = await open(
      { identity },
      { 'GET /me': () => [403, {}], 'POST /teams/:team/keys': made, 'GET /teams/:team/keys': nothing },
    )
    expect(await backend.check(never())).toEqual([expect.stringContaining('may not ask whose it is')])
    expect((await backend.issue(newRequest(['a']), never())).handle).not.toHaveProperty('identity')
  })

  test('misses no account that moves to an earlier page while the list is read', async () => {
    const labels = ['mf_1', 'mf_2', name, 'mf_4']
    const deleted: string[] = []
    const list = { ...RECIPE.list, query: { page: '{page}' }, next: { size: 2 } }
    const backend = await open(
      { list },
      {
        'GET /teams/:team/keys': ({ parts, query }) => {
          if (parts[0] !== 'a') return [200, { keys: [] }]
          const start = (Number(query.get('page')) - 1) * 2
          const keys = labels.slice(start, start + 2).map((label) => ({ id: label, label }))
          // The first one ends after the first page was read.
          if (labels[0] === 'mf_1') labels.shift()
          return [200, { keys }]
        },
        'DELETE /teams/:team/keys/:id': ({ parts }) => {
          deleted.push(parts[1] ?? '')
          return [204]
        },
      },
    )
    await backend.revoke?.({ name }, never())
    expect(deleted).toEqual([name])
  })

  test('counts no list that changes all the time', async () => {
    let next = 1
    const list = { ...RECIPE.list, query: { page: '{page}' }, next: { size: 1 } }
    const backend = await open(
      { list },
      {
        'GET /teams/:team/keys': ({ query }) => {
          next += 1
          return [
            200,
            { keys: query.get('page') === '1' ? [{ id: next, label: `mf_${next}`.padEnd(29, '0') }] : [] },
          ]
        },
      },
    )
    await expect(backend.revoke?.({ name }, never())).rejects.toMatchObject({ fault: 'denied' })
  })

  test('does not follow a list that never ends', async () => {
    const list = { ...RECIPE.list, query: { after: '{after}' }, next: { cursor: '/next' } }
    const backend = await open({ list }, { 'GET /teams/:team/keys': () => [200, { keys: [], next: 'same' }] })
    await expect(backend.revoke?.({ name }, never())).rejects.toMatchObject({ fault: 'unavailable' })
    expect(api.seen).toHaveLength(2)
  })
})

test('check reads every place, and says what is missing', async () => {
  const check = [{ request: 'GET /me', expect: [{ at: '/roles', is: 'keeper', needs: 'the role keeper' }] }]
  let roles = ['guest']
  const backend = await open(
    { check },
    { 'GET /teams/:team/keys': nothing, 'GET /me': () => [200, { roles }] },
  )
  await expect(backend.check(never())).rejects.toMatchObject({
    fault: 'denied',
    message: expect.stringContaining('the role keeper'),
  })
  roles = ['guest', 'keeper']
  await expect(backend.check(never())).resolves.toEqual([])
  expect(api.seen.slice(-3)).toEqual(['GET /teams/a/keys', 'GET /teams/b/keys', 'GET /me'])
})

test('a success of another kind leaves nothing of its body in the log', async () => {
  const backend = await open(
    { issue: { ...RECIPE.issue, requests: [{ ...RECIPE.issue.requests[0], ok: [201] }] } },
    { 'POST /teams/:team/keys': () => [200, { id: 7, key: SECRET }] },
  )
  const failure = await backend.issue(newRequest(['a']), never()).catch((error: unknown) => error)
  expect(failure).toMatchObject({ fault: 'unavailable', detail: '200' })
})

test('check refuses a login that it must not be', async () => {
  const check = [
    { request: 'GET /me', expect: [{ at: '/name', is_not: 'group_[0-9]+_bot.*', needs: 'a user' }] },
  ]
  let name = 'group_7_bot_ab12'
  const backend = await open(
    { check },
    { 'GET /teams/:team/keys': nothing, 'GET /me': () => [200, { name }] },
  )
  await expect(backend.check(never())).rejects.toMatchObject({
    fault: 'denied',
    message: expect.stringContaining('needs a user'),
  })
  name = 'mayfly'
  await expect(backend.check(never())).resolves.toEqual([])
})

test('a refusal names what the login needs, and never what the upstream said', async () => {
  const backend = await open({}, { 'POST /teams/:team/keys': () => [403, { message: 's3cret' }] })
  const failure = await backend.issue(newRequest(['a']), never()).catch((error: Error) => error)
  expect((failure as Error).message).toBe(
    "Acme refused the request (status 403). Mayfly's login needs the role keeper.",
  )
})
