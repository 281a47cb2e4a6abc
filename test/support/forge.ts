import { createRemoteJWKSet, jwtVerify } from 'jose'
import type { TestApp } from './app.ts'
import { type GitServer, startGitServer } from './git-server.ts'

const permission = (scope: string) => scope.split(':').at(-1) ?? ''

/**
 * A backend `forge`, and a git server that accepts its tokens: it checks them against the key set of the backend, and by
 * introspection, which knows revoked ones. The permissions are `read` and `write`.
 */
export async function startForge({ url, ...app }: TestApp): Promise<GitServer> {
  await app.newBackend({ name: 'forge', config: { audience: 'forge' }, max_ttl: '1h', default_ttl: '10m' })
  const { oidc } = await app.newAgent({ scopes: ['admin:tokens:read'] })
  const issuer = `${url}/backends/forge`
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))

  async function isActive(token: string): Promise<boolean> {
    const form = new URLSearchParams({ token, ...oidc })
    const reply = await fetch(`${url}/oauth/introspect`, { method: 'POST', body: form })
    return ((await reply.json()) as { active: boolean }).active
  }

  return startGitServer(async (username, password) => {
    if (username !== 'x-access-token') return undefined
    const options = { issuer, audience: 'forge', typ: 'at+jwt' }
    const claims = await jwtVerify(password, keys, options).then(
      ({ payload }) => payload,
      () => undefined,
    )
    if (claims === undefined || !(await isActive(password))) return undefined
    return { agent: String(claims['agent_name']), scopes: String(claims['scope']).split(' ').map(permission) }
  })
}
