import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { allow, CLIENT, deny } from '../support/command.ts'
import { newPerson, type Person } from '../support/person.ts'

/** Loopback is plain HTTP here; both libraries want to be told that this is meant. */
const HTTP = { [oauth.allowInsecureRequests]: true }
const CALLBACK = 'http://127.0.0.1:49152/callback'
const CLIENT_OF = { client_id: CLIENT } satisfies oauth.Client

let app: TestApp
let alice: Person
let issuer: URL
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  alice = await newPerson(app)
  issuer = new URL(app.url)
})
afterAll(() => app.close())

const whose = async (token: string) => (await app.as(token).get('/v1/admin/me')).body.email

describe('oauth4webapi', () => {
  const discover = async () =>
    oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...HTTP }),
    )

  test('the device grant: pending, allowed, and what it makes of a refusal', async () => {
    const server = await discover()
    const begin = async () =>
      oauth.processDeviceAuthorizationResponse(
        server,
        CLIENT_OF,
        await oauth.deviceAuthorizationRequest(
          server,
          CLIENT_OF,
          oauth.None(),
          new URLSearchParams({ host: 'laptop' }),
          HTTP,
        ),
      )
    const ask = async ({ device_code }: oauth.DeviceAuthorizationResponse) =>
      oauth.processDeviceCodeResponse(
        server,
        CLIENT_OF,
        await oauth.deviceCodeGrantRequest(server, CLIENT_OF, oauth.None(), device_code, HTTP),
      )
    const begun = await begin()
    expect(begun).toMatchObject({ interval: 5, expires_in: 600 })
    await expect(ask(begun)).rejects.toMatchObject({ error: 'authorization_pending', status: 400 })
    await expect(ask(begun)).rejects.toMatchObject({ error: 'slow_down' })
    expect((await allow(alice, { user_code: begun.user_code })).status).toBe(200)
    const reply = await ask(begun)
    expect(reply).toMatchObject({ token_type: 'bearer', scope: 'admin:* *' })
    expect(await whose(reply.access_token)).toBe(alice.email)
    await expect(ask(begun)).rejects.toMatchObject({ error: 'expired_token' })
    const denied = await begin()
    await deny(alice, { user_code: denied.user_code })
    await expect(ask(denied)).rejects.toMatchObject({ error: 'access_denied' })
  })

  test('the authorization code grant with PKCE, and the issuer in the answer', async () => {
    const server = await discover()
    const verifier = oauth.generateRandomCodeVerifier()
    const state = oauth.generateRandomState()
    const url = new URL(server.authorization_endpoint ?? '')
    expect(url.pathname).toBe('/console/allow')
    const request = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT,
      redirect_uri: CALLBACK,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      host: 'laptop',
    }).toString()
    const { redirect_to } = (await allow(alice, { request })).body
    const answer = oauth.validateAuthResponse(server, CLIENT_OF, new URL(redirect_to), state)
    const redeem = async (by: string) =>
      oauth.processAuthorizationCodeResponse(
        server,
        CLIENT_OF,
        await oauth.authorizationCodeGrantRequest(
          server,
          CLIENT_OF,
          oauth.None(),
          answer,
          CALLBACK,
          by,
          HTTP,
        ),
      )
    await expect(redeem(oauth.generateRandomCodeVerifier())).rejects.toMatchObject({ error: 'invalid_grant' })
    const reply = await redeem(verifier)
    expect(await whose(reply.access_token)).toBe(alice.email)
    await expect(redeem(verifier)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect(await whose(reply.access_token)).toBeUndefined()
    const denied = (await deny(alice, { request })).body.redirect_to
    expect(() => oauth.validateAuthResponse(server, CLIENT_OF, new URL(denied), state)).toThrow(
      expect.objectContaining({ error: 'access_denied' }),
    )
  })
})

describe('openid-client', () => {
  const configured = () =>
    openid.discovery(issuer, CLIENT, undefined, openid.None(), { execute: [openid.allowInsecureRequests] })

  test('the device grant', async () => {
    const config = await configured()
    const begun = await openid.initiateDeviceAuthorization(config, { host: 'laptop' })
    await allow(alice, { user_code: begun.user_code })
    const reply = await openid.pollDeviceAuthorizationGrant(config, begun)
    expect(await whose(reply.access_token)).toBe(alice.email)
  })

  test('the authorization code grant', async () => {
    const config = await configured()
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const state = openid.randomState()
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: CALLBACK,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      state,
      host: 'laptop',
    })
    const { redirect_to } = (await allow(alice, { request: url.search })).body
    const reply = await openid.authorizationCodeGrant(config, new URL(redirect_to), {
      pkceCodeVerifier,
      expectedState: state,
    })
    expect(await whose(reply.access_token)).toBe(alice.email)
  })
})
