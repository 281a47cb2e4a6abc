import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import {
  allow,
  beginDevice,
  commandByCode,
  deny,
  look,
  newBrowserLogin,
  pollDevice,
  postForm,
  redeem,
} from '../support/command.ts'
import { newPerson } from '../support/person.ts'

const DOCUMENTS = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']

describe.each([
  ['operator_login: off', { operatorLogin: 'off' }],
  ['console: off', { console: 'off' }],
])('%s', (_, argv) => {
  let on: TestApp
  let off: TestApp
  beforeAll(async () => {
    on = await startApp({ dialect: 'postgres' })
    off = await startApp({
      databaseUrl: on.databaseUrl ?? '',
      masterKeyFile: join(on.directory, 'master.key'),
      argv,
    })
  })
  afterAll(async () => {
    await off.close()
    await on.close()
  })

  test('discovery announces nothing of it', async () => {
    for (const path of DOCUMENTS) {
      const document = (await off.as(undefined).get(path)).body
      expect(document).toMatchObject({
        grant_types_supported: [
          'client_credentials',
          'urn:ietf:params:oauth:grant-type:token-exchange',
          'urn:ietf:params:oauth:grant-type:jwt-bearer',
        ],
        response_types_supported: ['id_token'],
        token_endpoint_auth_methods_supported: [
          'client_secret_post',
          'client_secret_basic',
          'private_key_jwt',
          'none',
        ],
      })
      for (const name of [
        'device_authorization_endpoint',
        'authorization_endpoint',
        'code_challenge_methods_supported',
        'authorization_response_iss_parameter_supported',
      ]) {
        expect(document).not.toHaveProperty(name)
        expect((await on.as(undefined).get(path)).body).toHaveProperty(name)
      }
    }
  })

  test('its grants are as unknown as any other, and a device cannot begin', async () => {
    const unknown = (grant_type: string) =>
      postForm(off, '/oauth/token', { grant_type, client_id: 'mayfly-cli' }).then(({ status, text }) => [
        status,
        text,
      ])
    const begun = await beginDevice(off)
    expect([begun.status, begun.body.error]).toEqual([404, 'invalid_request'])
    const other = await unknown('password')
    const device = await pollDevice(off, `mdc_${'0'.repeat(64)}`)
    expect([device.status, device.text]).toEqual(other)
    const code = await redeem(off, newBrowserLogin(), `mac_${'0'.repeat(64)}`)
    expect([code.status, code.text]).toEqual(other)
    const agent = await off.newAgent()
    for (const grant_type of ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'])
      expect((await postForm(off, '/oauth/token', { grant_type, ...agent.oidc })).body.error).toBe(
        'unsupported_grant_type',
      )
  })

  test('no token of another node counts, and nobody allows one', async () => {
    const alice = await newPerson(on)
    const { token } = await commandByCode(on, alice)
    expect((await on.as(token).get('/v1/admin/me')).status).toBe(200)
    const refused = await off.as(token).get('/v1/admin/me')
    const other = await off.as(`ckr_${'0'.repeat(48)}`).get('/v1/admin/me')
    expect([refused.status, refused.body.error.message]).toEqual([401, other.body.error.message])
    const begun = (await beginDevice(on)).body
    const person = { ...alice, call: callOn(alice.cookie, alice.key), act: callOn(alice.cookie, alice.key) }
    for (const act of [look, allow, deny]) {
      const reply = await act(person, { user_code: begun.user_code })
      expect([reply.status, reply.body.error.code]).toEqual([404, 'not_found'])
    }
    expect((await pollDevice(on, begun.device_code)).body.error).toBe('authorization_pending')
  })

  const callOn = (cookie: string, key: string) => async (method: string, path: string, body?: unknown) => {
    const reply = await off.raw({
      method,
      path,
      headers: {
        host: new URL(off.url).host,
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/json',
        cookie,
        'mayfly-console': key,
      },
      body: JSON.stringify(body),
    })
    return { status: reply.status, headers: new Headers(), text: reply.text, body: JSON.parse(reply.text) }
  }
})
