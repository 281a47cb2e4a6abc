import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { parse } from 'yaml'
import { createDockerRegistry } from '../../support/docker-registry.ts'
import { type OidcServer, startOidcServer } from '../../support/oidc-server.ts'
import type { StartUpstream } from '../backend-page.ts'
import type { GuideOptions } from '../run-guide.ts'

/** The authorization server knows the client of the page by a name for each way to log in. */
const replaceIn = ({ tokenEndpoint, revocationEndpoint }: OidcServer): GuideOptions['replace'] => [
  ['--client-id mayfly --client-auth', '--client-id signed --client-auth'],
  ['--key-id mayfly-1', '--key-id mayfly'],
  ['--client-id mayfly', '--client-id basic'],
  ['https://login.example.com/oauth2/token', `${tokenEndpoint} --local`],
  ['https://login.example.com/oauth2/revoke', revocationEndpoint],
  ['calendar.read', 'orders:read'],
]

/** Puts `./report` and the client's secret into the directory. The program says what a resource server learns of its token. */
async function prepare(cwd: string, { url, secret }: OidcServer): Promise<void> {
  await writeFile(join(cwd, 'client-secret'), secret, { mode: 0o600 })
  const ask = `--data-urlencode token="$API_TOKEN" --data-urlencode client_secret@client-secret -d client_id=post`
  await writeFile(
    join(cwd, 'report'),
    `#!/bin/sh\nprintf %s "$API_TOKEN" > seen\nexec curl -fsS ${ask} ${url}/token/introspection\n`,
  )
  await chmod(join(cwd, 'report'), 0o755)
}

export const oauth2: StartUpstream = async ({ cwd, mayfly }) => {
  const server = await startOidcServer()
  await prepare(cwd, server)
  await writeFile(join(cwd, 'key.pem'), server.privateKey, { mode: 0o600 })
  await writeFile(join(cwd, 'refresh-token'), await server.signIn(), { mode: 0o600 })
  server.trust({ jwks: `${mayfly}/.well-known/jwks.json`, issuer: mayfly, audience: server.tokenEndpoint })
  return {
    replace: replaceIn(server),
    async verify(results) {
      const said = JSON.parse(results.at(-1)?.output ?? '')
      expect(said).toMatchObject({ active: true, scope: 'orders:read orders:write' })
      const grants = new Set(server.seen.map((form) => form.get('grant_type')?.replace(/.*:/, '')))
      expect(grants).toEqual(new Set(['client_credentials', 'refresh_token', 'token-exchange']))
    },
    stop: server.close,
  }
}

export const oauth2Revocable: StartUpstream = async ({ cwd }) => {
  const server = await startOidcServer()
  await prepare(cwd, server)
  return {
    replace: replaceIn(server),
    async verify(results) {
      expect(JSON.parse(results.at(-1)?.output ?? '')).toMatchObject({ active: true })
      expect(await server.introspect(await readFile(join(cwd, 'seen'), 'utf8'))).toEqual({ active: false })
    },
    stop: server.close,
  }
}

/** The page has the part of the configuration that is about tokens. */
export const registry: StartUpstream = async ({ etc }) => {
  const server = await createDockerRegistry()
  const directory = join(etc, 'docker/registry')
  await mkdir(directory, { recursive: true })
  const start = async () => {
    const { auth } = parse(await readFile(join(directory, 'config.yml'), 'utf8'))
    await server.startWith(auth)
  }
  return {
    programs: { skopeo: 'exec /usr/bin/skopeo --insecure-policy "$@"' },
    services: { 'docker-registry': start },
    replace: [
      ['--address https://registry.example.com', `--local --address http://${server.host}`],
      ['registry.example.com', server.host],
      ['skopeo copy', 'skopeo copy --dest-tls-verify=false'],
      ['skopeo inspect', 'skopeo inspect --tls-verify=false'],
      ['oci:app', server.image],
    ],
    async verify(results) {
      expect(results.at(-1)?.output).toContain('"Digest": "sha256:')
    },
    stop: server.close,
  }
}
