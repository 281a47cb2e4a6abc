import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const POLICIES = ['c', 'a', 'b', 'e', 'd'].map(
  (name) => `  - { name: ${name}, pattern: "${name}-*", scopes: ["be-1"], auto_approve: false }`,
)

describe.each(DIALECTS)('paging on %s', (dialect) => {
  let app: TestApp
  let agent: NewAgent

  beforeAll(async () => {
    app = await startApp({ dialect, yaml: `policies:\n${POLICIES.join('\n')}\n` })
    for (const name of ['Delta', 'alpha', 'charlie', 'Bravo', 'echo']) await app.newBackend({ name })
    for (let one = 0; one < 4; one += 1) await app.newAgent()
    agent = await app.newAgent({ scopes: ['*'] })
    for (let one = 0; one < 5; one += 1) await agent.client.post('/v1/credentials/alpha')
    for (let one = 0; one < 5; one += 1) await agent.client.post('/v1/request', { scopes: [`more:${one}`] })
  })
  afterAll(() => app.close())

  const nextOf = (headers: Headers) => /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]

  async function pages(path: string, limit: number): Promise<unknown[][]> {
    const client = path === '/v1/active' ? agent.client : app.local
    const all: unknown[][] = []
    let next: string | undefined = `${path}?limit=${limit}`
    while (next !== undefined) {
      const reply = await client.get(next)
      expect(reply.status).toBe(200)
      all.push(reply.body)
      next = nextOf(reply.headers)
      expect(all.length).toBeLessThan(50)
    }
    return all
  }

  const LISTS = [
    '/v1/admin/agents',
    '/v1/admin/backends',
    '/v1/admin/tokens',
    '/v1/admin/pending',
    '/v1/admin/policies',
    '/v1/admin/keys',
    '/v1/active',
  ]

  test.each(LISTS)('%s leads through everything by Link, each once and in order', async (path) => {
    const whole = await pages(path, 1000)
    expect(whole).toHaveLength(1)
    expect(whole[0]).toHaveLength(5)
    const inTwos = await pages(path, 2)
    expect(inTwos.map((page) => page.length)).toEqual([2, 2, 1])
    expect(inTwos.flat()).toEqual(whole[0])
    // Exactly full: no link to an empty page.
    expect((await pages(path, 5)).map((page) => page.length)).toEqual([5])
  })

  test.each(['/v1/admin/kinds', '/v1/admin/plugins'])('%s is paged like the others', async (path) => {
    const whole = (await pages(path, 1000)).flat()
    expect((await pages(path, 1)).flat()).toEqual(whole)
    expect(whole.length).toBeGreaterThan(1)
  })

  test.each([...LISTS, '/v1/admin/kinds', '/v1/admin/plugins', '/v1/admin/audit'])(
    '%s refuses a limit outside 1 to 1000, and what it does not know',
    async (path) => {
      const client = path === '/v1/active' ? agent.client : app.local
      for (const query of ['limit=0', 'limit=1001', 'limit=x', 'limit=-1', 'cursor=', 'page=2']) {
        const reply = await client.get(`${path}?${query}`)
        expect([query, reply.status, reply.body.error?.code]).toEqual([query, 400, 'invalid_request'])
      }
    },
  )

  test('Link keeps the other members of the query', async () => {
    const reply = await app.admin('GET', '/v1/admin/tokens?backend=alpha&status=active&limit=2')
    const next = nextOf(reply.headers) ?? ''
    expect(next).toMatch(/^\/v1\/admin\/tokens\?/)
    const query = new URLSearchParams(next.split('?')[1])
    expect([query.get('backend'), query.get('status'), query.get('limit')]).toEqual(['alpha', 'active', '2'])
  })
})
