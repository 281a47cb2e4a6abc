import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { usesOf } from '../../../src/backends/github/uses.ts'
import { mergeUses } from '../../../src/domain/merge-uses.ts'
import type { UseRules } from '../../../src/domain/use.ts'
import { type ClientWorld, type Handler, startClientWorld } from '../support/client-world.ts'

/** gh takes no address with a scheme or a port: HTTPS_PROXY leads it. */
const SECRET = 'ghs_0123456789abcdefghijABCDEFGHIJ012345'
/** The example of the page. */
const page = readFileSync(new URL('../../../docs/explanation/proxy.md', import.meta.url), 'utf8')
const RULES: UseRules = JSON.parse(/```json\n(\{[^`]*\/graphql[^`]*\})\n```/.exec(page)?.[1] ?? '')

const seen: string[] = []
const foreign: string[] = []
const api: Handler = (request, response) => {
  const { method, url, headers } = request
  seen.push(`${method} ${url} ${headers.authorization === `token ${SECRET}` ? 'known' : 'wrong'}`)
  response.setHeader('content-type', 'application/json')
  if (url === '/graphql') response.end(JSON.stringify({ data: { viewer: { login: headers.authorization } } }))
  else response.end(JSON.stringify([{ number: 7, title: `Shapes ${headers.authorization}` }]))
}

async function openWorld(rules: UseRules | null): Promise<ClientWorld> {
  const settings = { base_url: 'https://api.github.com', owner: 'acme', local: false }
  return startClientWorld(
    [
      {
        ...{ name: 'gh', type: 'github', token: SECRET },
        uses: mergeUses(usesOf(settings as never, ['acme/shop']), rules) as never,
        env: ({ token }) => ({ GH_TOKEN: token, GITHUB_TOKEN: token }),
      },
    ],
    {
      'api.github.com': api,
      'ghe.elsewhere.example': (request, response) => {
        foreign.push(String(request.headers.authorization))
        response.writeHead(404).end()
      },
    },
  )
}

let world: ClientWorld
let named: ClientWorld
beforeAll(async () => {
  world = await openWorld(null)
  named = await openWorld(RULES)
})
afterAll(async () => {
  await world?.close()
  await named?.close()
})
beforeEach(() => {
  for (const list of [seen, foreign, world.misused]) list.length = 0
})

const QUERY = ['gh', 'api', 'graphql', '-f', 'query={viewer{login}}']

describe('gh by HTTPS_PROXY', () => {
  it('works with a placeholder, and does not see the secret that GitHub repeats', async () => {
    const { code, stdout } = await world.run(['gh', 'api', '/repos/acme/shop/pulls', '--jq', '.[0].title'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Shapes token \S+\n$/)])
    expect(stdout).not.toContain(SECRET)
    expect(seen).toEqual(['GET /repos/acme/shop/pulls known'])
  })

  it('is refused another repository, another path and a method that nobody named', async () => {
    for (const args of [
      ['/repos/acme/bank/pulls'],
      ['/user/keys'],
      ['/repos/acme/shop/keys', '-f', 'title=mine', '-f', 'key=ssh-ed25519 AAAA'],
      ['-X', 'DELETE', '/orgs/acme'],
    ]) {
      const { code, stdout } = await world.run(['gh', 'api', ...args])
      expect([args, code, stdout]).toEqual([args, 1, expect.stringContaining('"code":"proxy_')])
    }
    expect(seen).toEqual([])
  })

  it('is refused GraphQL, and what gh does by it', async () => {
    const asked = await world.run(QUERY)
    expect([asked.code, asked.stdout]).toEqual([1, expect.stringContaining('proxy_path_not_allowed')])
    expect((await world.run(['gh', 'pr', 'list', '--repo', 'acme/shop'])).code).toBe(1)
    expect(seen).toEqual([])
  })

  it('may ask GraphQL where it is named, and still delete no branch', async () => {
    const { code, stdout } = await named.run([...QUERY, '--jq', '.data.viewer.login'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^token \S+\n$/)])
    expect(stdout).not.toContain(SECRET)
    expect(seen).toEqual(['POST /graphql known'])
    const branch = '/repos/acme/shop/git/refs/heads/main'
    const { stdout: refused } = await named.run(['gh', 'api', '-X', 'DELETE', branch])
    expect(refused).toContain('proxy_denied')
    expect(seen).toHaveLength(1)
  })

  it('is refused another server, which is told', async () => {
    const to = { GH_HOST: 'ghe.elsewhere.example', GH_ENTERPRISE_TOKEN: world.env['GH_TOKEN'] ?? '' }
    const { code } = await world.run(['gh', 'api', '/repos/acme/shop/pulls'], to)
    expect(code).toBe(1)
    expect(new Set(world.misused)).toEqual(new Set(['gh']))
    expect(foreign).toEqual([])
  })

  it('leaves no secret in what it printed and wrote, and finds the placeholder', async () => {
    expect(await world.find(SECRET)).toEqual([])
    await world.run(['sh', '-c', 'env >environment'])
    expect(await world.find(world.env['GH_TOKEN'] ?? '')).toContain(join(world.directory, 'environment'))
  })
})
