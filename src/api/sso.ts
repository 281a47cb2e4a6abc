import { Type } from 'typebox'
import { MAX_URL_BYTES } from '../domain/limits.ts'
import { LoggedIn } from './operators.ts'
import { sent, shown, text } from './shared.ts'

/** Single sign-on: `/v1/console/login/sso`, and confirmations by it. */
const CHALLENGE = 'dGhpcyBpcyBhbiBleGFtcGxlIG9mIGEgY2hhbGxlbmdl'

const providerName = (description: string) =>
  text(description, 'Example SSO', { minLength: 1, maxLength: 64 })

export const LoginWays = shown('LoginWays', {
  sso: Type.Array(
    Type.Object({ name: text('Name of the provider.', 'Example SSO') }, { description: 'A provider.' }),
    { description: 'The providers of single sign-on, in the order of the configuration.' },
  ),
})

export const BeginSso = sent('BeginSso', { provider: providerName('Name of a provider.') })

export const BegunSso = shown('BegunSso', {
  url: text(
    'Where the browser goes. It comes back to `/console/sso`.',
    'https://login.example.com/authorize?client_id=mayfly',
  ),
})

export const FinishSso = sent('FinishSso', {
  parameters: text(
    'The query of the address that the browser came back to.',
    'code=SplxlOBe&state=af0ifjsldkj',
    {
      minLength: 1,
      maxLength: MAX_URL_BYTES,
    },
  ),
})

/** The cookie of the session comes with a login. */
export const FinishedSso = shown('FinishedSso', {
  key: Type.Optional(LoggedIn.properties.key),
  expires_at: Type.Optional(LoggedIn.properties.expires_at),
  confirmed: Type.Optional(
    text('Instead of these two, where this was a confirmation: its challenge.', CHALLENGE),
  ),
})

export const BeginSsoConfirmation = sent('BeginSsoConfirmation', {
  challenge: text('Of `error.options.sso`.', CHALLENGE, {
    minLength: 1,
    maxLength: 64,
    pattern: '^[A-Za-z0-9_-]+$',
  }),
})
