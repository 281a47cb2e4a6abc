import { generateKeyPairSync } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inline, type Signer } from '../support/identity-tokens.ts'
import {
  entry,
  ISSUER,
  JWT_BEARER,
  JWT_TYPE,
  signer,
  TOKEN_EXCHANGE,
  template,
  workload,
} from '../support/keyless.ts'
import { type OAuthApp, startOAuthApp } from '../support/oauth-app.ts'
import { isInstalled, run } from '../support/run-program.ts'

const HTTP = { [oauth.allowInsecureRequests]: true }
/** Where Debian has the libraries of Go. */
const GO_PATH = '/usr/share/gocode'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** The key of the issuer that the library of Go signs for. */
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const goKey: Pick<Signer, 'jwk'> = {
  jwk: { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'go', alg: 'RS256', use: 'sig' },
}

let app: OAuthApp
let issuer: URL
beforeAll(async () => {
  app = await startOAuthApp()
  await app.listen()
  issuer = new URL(app.issuer)
  app.core.identities.setTrusted({
    identities: [
      entry('ci', {
        agent: template('ci-{run_id}'),
        scopes: ['db', 'queue:read'],
        keys: inline(signer, goKey as Signer),
        maxAgeMs: 3_600_000,
      }),
    ],
    platforms: [],
  })
})
afterAll(() => app.close())

const token = (run_id: string) => workload(app, { run_id })
/** By grant: what a client adds to it. */
const GRANTS = [
  [
    'token exchange',
    TOKEN_EXCHANGE,
    (text: string) => ({ subject_token: text, subject_token_type: JWT_TYPE }),
  ],
  ['JWT bearer', JWT_BEARER, (text: string) => ({ assertion: text })],
] as const

describe.each(GRANTS)('%s', (_name, grant, fields) => {
  it('works with oauth4webapi', async () => {
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...HTTP }),
    )
    expect(server.grant_types_supported).toContain(grant)
    const client: oauth.Client = { client_id: 'whatever' }
    const asked = async (more: Record<string, string>) =>
      oauth.processGenericTokenEndpointResponse(
        server,
        client,
        await oauth.genericTokenEndpointRequest(server, client, oauth.None(), grant, more, HTTP),
      )
    const reply = await asked({ ...fields(token('1')), scope: 'db:read', resource: app.issuer })
    expect(reply).toMatchObject({ token_type: 'bearer', scope: 'db:read' })
    expect(reply['issued_token_type']).toBe(grant === TOKEN_EXCHANGE ? ACCESS_TOKEN : undefined)
    const presented = new Request('https://api.example/', {
      headers: { authorization: `Bearer ${reply.access_token}` },
    })
    const claims = await oauth.validateJwtAccessToken(server, presented, app.issuer, HTTP)
    expect(claims).toMatchObject({ agent_name: 'ci-1', scope: 'db:read' })
    await expect(asked(fields(token('a/b')))).rejects.toMatchObject({ error: 'invalid_grant', status: 400 })
    await expect(asked({ ...fields(token('1')), scope: 'other' })).rejects.toMatchObject({
      error: 'invalid_scope',
    })
    await expect(asked({ ...fields(token('1')), resource: 'https://x.example' })).rejects.toMatchObject({
      error: 'invalid_target',
    })
  })

  it('works with openid-client', async () => {
    const configuration = await openid.discovery(issuer, 'whatever', undefined, openid.None(), {
      execute: [openid.allowInsecureRequests],
    })
    const reply = await openid.genericGrantRequest(configuration, grant, fields(token('2')))
    expect(decodeJwt(reply.access_token)).toMatchObject({ agent_name: 'ci-2', scopes: ['db', 'queue:read'] })
    expect(reply.expiresIn()).toBeGreaterThan(890)
    const used = fields(token('2'))
    await openid.genericGrantRequest(configuration, grant, used)
    const refused = openid.genericGrantRequest(configuration, grant, used)
    await expect(refused).rejects.toMatchObject({ error: 'invalid_grant' })
    await expect(refused).rejects.toMatchObject({
      cause: { error_uri: expect.stringContaining('/console/activity?action=token.refused') },
    })
  })
})

/** JWT bearer: the library signs the assertion itself. Token exchange: it sends what we signed. */
const GO_CLIENT = `package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"
)

func must(token *oauth2.Token, err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(token.Type(), token.AccessToken, time.Until(token.Expiry) > 5*time.Minute)
}

func main() {
	key, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	bearer := &jwt.Config{
		Email: "${ISSUER}", Subject: "job", PrivateKey: key, PrivateKeyID: "go", Audience: "https://mayfly.test",
		Expires: 5 * time.Minute, TokenURL: os.Args[1] + "/oauth/token",
		PrivateClaims: map[string]interface{}{"run_id": "go"},
	}
	must(bearer.TokenSource(context.Background()).Token())
	exchange := &clientcredentials.Config{
		TokenURL:  os.Args[1] + "/oauth/token",
		AuthStyle: oauth2.AuthStyleInParams,
		Scopes:    []string{"db:read"},
		EndpointParams: url.Values{
			"grant_type":         {"${TOKEN_EXCHANGE}"},
			"subject_token":      {os.Args[3]},
			"subject_token_type": {"${JWT_TYPE}"},
		},
	}
	must(exchange.Token(context.Background()))
	must(exchange.Token(context.Background()))
}
`

const hasGo =
  process.env['CI'] !== undefined ||
  (isInstalled('go') && existsSync(`${GO_PATH}/src/golang.org/x/oauth2/jwt`))

it.skipIf(!hasGo)('golang.org/x/oauth2 logs in by an assertion that it signs, and by exchange', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-go-'))
  try {
    await writeFile(join(directory, 'main.go'), GO_CLIENT)
    const key = join(directory, 'key.pem')
    await writeFile(key, rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    const { HOME = directory, PATH = '' } = process.env
    const env = { HOME, PATH, GO111MODULE: 'off', GOPATH: GO_PATH, GOFLAGS: '' }
    const program = ['go', 'run', join(directory, 'main.go'), app.issuer, key, token('go')]
    const end = await run(program, env, {})
    const lines = end.stdout.trim().split('\n')
    expect([end.code, lines.slice(2).join(' ')]).toEqual([1, expect.stringContaining('"invalid_grant"')])
    const names = lines.slice(0, 2).map((line) => {
      const [type, text = '', isLong] = line.split(' ')
      expect([type, isLong]).toEqual(['Bearer', 'true'])
      return decodeJwt(text)
    })
    expect(names).toMatchObject([
      { agent_name: 'ci-go', scopes: ['db', 'queue:read'] },
      { agent_name: 'ci-go', scopes: ['db:read'] },
    ])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
