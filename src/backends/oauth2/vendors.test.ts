import Value from 'typebox/value'
import { expect, test } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { answering } from '../../../test/support/answering.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { Issued } from '../kind.ts'
import { type Config, config } from './config.ts'
import { oauth2 } from './kind.ts'

function settingsOf(token_endpoint: string): Config {
  const base = { token_endpoint, client_id: 'mayfly', client_secret: 'secret', local: true }
  return Value.Default(config, base) as Config
}

async function issueOnce(settings: Config, scopes: readonly string[]): Promise<Issued> {
  await using backend = await oauth2.open(settings, createTestHost('api').host)
  return backend.issue(newRequest(scopes) as never, never())
}

test('a server that adds scopes unasked is refused with the way out, which works', async () => {
  const reply = { access_token: 'a'.repeat(40), token_type: 'Bearer', expires_in: 60 }
  await using keycloak = await answering({ ...reply, scope: 'orders:read email profile' })
  const settings = settingsOf(keycloak.url)
  await expect(issueOnce(settings, ['orders:read'])).rejects.toMatchObject({
    fault: 'denied',
    message: expect.stringMatching(/remove the default scopes of Mayfly's client.*or name them in "scopes"/),
  })
  const named = { ...settings, scopes: ['orders:read=orders:read email profile'] }
  expect((await issueOnce(named, ['orders:read'])).secret).toBe(reply.access_token)
})

test.each([
  ['bad_refresh_token', 'no longer accepts the refresh token'],
  ['incorrect_client_credentials', "refused the login of Mayfly's client"],
  ['unverified_user_email', 'refused the request'],
])('the error %s is a refusal although its status is 200', async (error, message) => {
  await using github = await answering({ error, error_description: 'x' })
  await expect(issueOnce(settingsOf(github.url), ['repo'])).rejects.toMatchObject({
    fault: 'denied',
    message: expect.stringContaining(message),
  })
})

test('a bearer token of Slack is one, although Slack calls it "bot"', async () => {
  const reply = { ok: true, access_token: 'xoxe.xoxb-1', token_type: 'bot', expires_in: 43_200 }
  await using slack = await answering({ ...reply, scope: 'chat:write' })
  const settings = settingsOf(slack.url)
  expect((await issueOnce(settings, ['chat:write'])).secret).toBe(reply.access_token)
})
