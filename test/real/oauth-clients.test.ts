import type { webcrypto } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CreatedAgent } from '../../src/core/agents/create-agent.ts'
import { type OAuthApp, startOAuthApp } from '../support/oauth-app.ts'
import { oauthCalls } from '../support/oauth-calls.ts'
import { isInstalled, run } from '../support/run-program.ts'

/** Loopback is plain HTTP here; both libraries want to be told that this is meant. */
const HTTP = { [oauth.allowInsecureRequests]: true }

let app: OAuthApp
let issuer: URL
const agents = new Map<string, CreatedAgent>()
const keys = new Map<string, webcrypto.CryptoKey>()

async function enrolled(name: string, algorithm: 'Ed25519' | webcrypto.EcKeyImportParams): Promise<void> {
  const pair = (await crypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  const publicJwk = kty === 'EC' ? { kty, crv, x, y } : { kty, crv, x }
  agents.set(name, await app.createAgent({ name, scopes: ['db', 'queue:read'], publicJwk }))
  keys.set(name, pair.privateKey)
}

beforeAll(async () => {
  app = await startOAuthApp({ audience: ['https://api.example'] })
  await app.listen()
  issuer = new URL(app.issuer)
  await enrolled('ed', 'Ed25519')
  await enrolled('ec', { name: 'ECDSA', namedCurve: 'P-256' })
  agents.set('plain', await app.createAgent({ name: 'plain', scopes: ['db', 'queue:read'] }))
})
afterAll(() => app.close())

const METHODS = [
  ['client_secret_post', 'plain'],
  ['client_secret_basic', 'plain'],
  ['private_key_jwt with EdDSA', 'ed'],
  ['private_key_jwt with ES256', 'ec'],
] as const

function agentOf(name: string): CreatedAgent {
  const agent = agents.get(name)
  if (agent === undefined) throw new Error(name)
  return agent
}

/** What either library makes of the same client; their functions have the same names. */
function authOf<T>(
  library: {
    ClientSecretPost(secret: string): T
    ClientSecretBasic(secret: string): T
    PrivateKeyJwt(key: webcrypto.CryptoKey): T
  },
  method: string,
  name: string,
): T {
  const key = keys.get(name)
  if (key !== undefined) return library.PrivateKeyJwt(key)
  return method === 'client_secret_post'
    ? library.ClientSecretPost(agentOf(name).clientSecret)
    : library.ClientSecretBasic(agentOf(name).clientSecret)
}

describe('oauth4webapi', () => {
  const discover = async (algorithm: 'oidc' | 'oauth2') =>
    oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm, ...HTTP }))

  it.each(METHODS)('%s: gets, checks, introspects and revokes a token', async (method, name) => {
    const server = await discover('oidc')
    expect(await discover('oauth2')).toEqual(server)
    const client: oauth.Client = { client_id: agentOf(name).agent.clientId }
    const auth = authOf(oauth, method, name)
    const grant = async (parameters: Record<string, string>) =>
      oauth.processClientCredentialsResponse(
        server,
        client,
        await oauth.clientCredentialsGrantRequest(
          server,
          client,
          auth,
          new URLSearchParams(parameters),
          HTTP,
        ),
      )
    const reply = await grant({ scope: 'openid db:read' })
    expect(reply).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: 'openid db:read' })
    expect(oauth.getValidatedIdTokenClaims(reply)).toMatchObject({ sub: agentOf(name).agent.id })

    const asked = (bearer: string) =>
      new Request('https://api.example/', { headers: { authorization: `Bearer ${bearer}` } })
    const claims = await oauth.validateJwtAccessToken(server, asked(reply.access_token), app.issuer, HTTP)
    expect(claims).toMatchObject({ scope: 'db:read', agent_name: name, scopes: ['db:read'] })
    await expect(
      oauth.validateJwtAccessToken(server, asked(reply.id_token ?? ''), app.issuer, HTTP),
    ).rejects.toThrow()
    const foreign = await grant({ resource: 'https://api.example' })
    await oauth.validateJwtAccessToken(server, asked(foreign.access_token), 'https://api.example', HTTP)
    await expect(
      oauth.validateJwtAccessToken(server, asked(foreign.access_token), app.issuer, HTTP),
    ).rejects.toThrow()

    const look = async () =>
      oauth.processIntrospectionResponse(
        server,
        client,
        await oauth.introspectionRequest(server, client, auth, reply.access_token, HTTP),
      )
    expect(await look()).toMatchObject({ active: true, client_id: client.client_id, scope: 'db:read' })
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, auth, reply.access_token, HTTP),
    )
    expect(await look()).toEqual({ active: false })
  })

  it('reads our refusals', async () => {
    const server = await discover('oidc')
    const client: oauth.Client = { client_id: agentOf('plain').agent.clientId }
    const request = async (auth: oauth.ClientAuth, parameters: Record<string, string>) =>
      oauth.processClientCredentialsResponse(
        server,
        client,
        await oauth.clientCredentialsGrantRequest(
          server,
          client,
          auth,
          new URLSearchParams(parameters),
          HTTP,
        ),
      )
    const good = oauth.ClientSecretPost(agentOf('plain').clientSecret)
    await expect(request(good, { scope: 'other' })).rejects.toMatchObject({ error: 'invalid_scope' })
    await expect(request(good, { resource: 'https://x.example' })).rejects.toMatchObject({
      error: 'invalid_target',
    })
    await expect(request(oauth.ClientSecretPost('wrong'), {})).rejects.toMatchObject({
      error: 'invalid_client',
      status: 401,
    })
    await expect(request(oauth.ClientSecretBasic('wrong'), {})).rejects.toMatchObject({ status: 401 })
  })
})

describe('openid-client', () => {
  it.each(METHODS)('%s: gets, introspects and revokes a token', async (method, name) => {
    const configuration = await openid.discovery(
      issuer,
      agentOf(name).agent.clientId,
      undefined,
      authOf(openid, method, name),
      { execute: [openid.allowInsecureRequests] },
    )
    expect(configuration.serverMetadata().issuer).toBe(app.issuer)
    const reply = await openid.clientCredentialsGrant(configuration, { scope: 'openid queue:read' })
    expect(reply.claims()).toMatchObject({
      sub: agentOf(name).agent.id,
      aud: [agentOf(name).agent.clientId],
    })
    expect(reply.expiresIn()).toBeGreaterThan(3_500)
    expect(await openid.tokenIntrospection(configuration, reply.access_token)).toMatchObject({ active: true })
    await openid.tokenRevocation(configuration, reply.access_token)
    expect(await openid.tokenIntrospection(configuration, reply.access_token)).toEqual({ active: false })
  })
})

describe('a relying party with jose', () => {
  it('verifies access tokens by the published keys, and takes no id token for one', async () => {
    const jwks = createRemoteJWKSet(new URL(`${app.issuer}/.well-known/jwks.json`))
    const { agent, clientSecret } = agentOf('plain')
    const response = await fetch(`${app.issuer}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: agent.clientId,
        client_secret: clientSecret,
        scope: 'openid db',
      }),
    })
    const reply = (await response.json()) as { access_token: string; id_token: string }
    const expected = { issuer: app.issuer, audience: app.issuer, typ: 'at+jwt', algorithms: ['RS256'] }
    const { payload } = await jwtVerify(reply.access_token, jwks, expected)
    expect(payload).toMatchObject({ sub: agent.id, scope: 'db', client_id: agent.clientId })
    await expect(jwtVerify(reply.id_token, jwks, expected)).rejects.toThrow()
    const asId = { issuer: app.issuer, audience: agent.clientId, typ: 'JWT' }
    expect((await jwtVerify(reply.id_token, jwks, asId)).payload.sub).toBe(agent.id)
    const refused = await fetch(`${app.issuer}/v1/status`, {
      headers: { authorization: `Bearer ${reply.id_token}` },
    })
    expect(refused.status).toBe(401)
  })

  it('verifies the tokens of a jwt backend by its own keys alone', async () => {
    await app.createJwtBackend('orders', { audience: 'https://orders.example' })
    const holder = await app.createAgent({ name: 'holder', scopes: ['orders:read'] })
    const response = await fetch(`${app.issuer}/api/v1/credentials`, {
      method: 'POST',
      headers: { authorization: `Bearer ${holder.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ backend: 'orders' }),
    })
    const { token } = (await response.json()) as { token: string }
    const base = `${app.issuer}/backends/orders`
    const document = (await (await fetch(`${base}/.well-known/openid-configuration`)).json()) as {
      issuer: string
      jwks_uri: string
    }
    const expected = { issuer: document.issuer, audience: 'https://orders.example' }
    expect(document.issuer).toBe(base)
    const own = createRemoteJWKSet(new URL(document.jwks_uri))
    expect((await jwtVerify(token, own, expected)).payload).toMatchObject({ scope: 'read' })
    const ours = createRemoteJWKSet(new URL(`${app.issuer}/.well-known/jwks.json`))
    await expect(jwtVerify(token, ours, expected)).rejects.toThrow()
  })
})

/** As the verifier that the specification's origin publishes: `aud` is a list, and RS256 by the key of the JWKS. */
const GO_VERIFIER = `package main

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strings"
)

type Claims struct {
	Iss    string   \`json:"iss"\`
	Sub    string   \`json:"sub"\`
	Aud    []string \`json:"aud"\`
	Scopes []string \`json:"scopes"\`
}

type Keys struct {
	Keys []struct{ Kid, N, E string }
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func decode(text string) []byte {
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	must(err)
	return bytes
}

func main() {
	input, err := io.ReadAll(os.Stdin)
	must(err)
	parts := strings.Split(string(input), ".")
	reply, err := http.Get(os.Args[1] + "/.well-known/jwks.json")
	must(err)
	var keys Keys
	must(json.NewDecoder(reply.Body).Decode(&keys))
	key := keys.Keys[0]
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(decode(key.N)), E: int(new(big.Int).SetBytes(decode(key.E)).Int64())}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	must(rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], decode(parts[2])))
	var claims Claims
	must(json.Unmarshal(decode(parts[1]), &claims))
	fmt.Println(strings.Join(append(claims.Aud, claims.Scopes...), " "))
}
`

it.skipIf(!isInstalled('go'))(
  'a verifier in Go that reads `aud` as a list takes our access token',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mayfly-go-'))
    try {
      await writeFile(join(directory, 'main.go'), GO_VERIFIER)
      const token = await oauthCalls(app).accessToken(agentOf('plain'))
      const { HOME = directory, PATH = '' } = process.env
      const program = ['go', 'run', join(directory, 'main.go'), app.issuer]
      const end = await run(program, { HOME, PATH, GO111MODULE: 'off' }, { stdin: token })
      expect([end.code, end.stdout.trim(), end.stderr]).toEqual([0, `${app.issuer} db queue:read`, ''])
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  },
)
