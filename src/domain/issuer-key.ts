/** A key of the issuer: the newest signs, the others verify until they retire. Times in epoch ms. */
export interface IssuerKey {
  readonly kid: string
  readonly publicJwk: Readonly<Record<string, unknown>>
  /** PKCS #8; null once it no longer signs. */
  readonly sealedPrivateKey: string | null
  readonly createdAt: number
  /** When it stops verifying; null for the key that signs. */
  readonly retiresAt: number | null
}
