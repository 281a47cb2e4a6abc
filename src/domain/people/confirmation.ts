import type { SsoAnswer } from './session.ts'

/** What a later check needs to see that a person confirmed these bytes. */
export type Confirmation = PasskeyConfirmation | SsoConfirmation

/** All is base64url but the request, and the relying party and its origin at that time. */
export interface PasskeyConfirmation {
  /** The canonical JSON of the request; its SHA-256 is the challenge. */
  readonly request: string
  readonly passkeyId: string
  /** COSE key. */
  readonly publicKey: string
  readonly clientDataJson: string
  readonly authenticatorData: string
  readonly signature: string
  readonly rpId: string
  readonly origin: string
}

/** The person logged in again at their provider for it. The id token is not kept: whoever has one can be somebody. */
export interface SsoConfirmation {
  /** The canonical JSON of the request. */
  readonly request: string
  /** Of that login: the SHA-256 of the request, base64url. */
  readonly nonce: string
  readonly sso: SsoAnswer
}
