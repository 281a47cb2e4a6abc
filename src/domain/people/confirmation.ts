/** What a later check needs to see that a person confirmed these bytes. All but the times are base64url. */
export interface Confirmation {
  /** The canonical JSON of the request; its SHA-256 is the challenge. */
  readonly request: string
  readonly passkeyId: string
  /** COSE key. */
  readonly publicKey: string
  readonly clientDataJson: string
  readonly authenticatorData: string
  readonly signature: string
  /** The relying party and its origin at that time. */
  readonly rpId: string
  readonly origin: string
}
