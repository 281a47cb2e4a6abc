/** A request that carried an `Idempotency-Key`, and the credential that it was given. Times in epoch ms. */
export interface IdempotencyRecord {
  readonly agentId: string
  readonly keyHash: string
  /** Hash of the request: the same key with another body is a conflict. */
  readonly bodyHash: string
  readonly credentialId: string
  /** The secret, sealed; null before it is known and after it has been erased. */
  readonly sealedReply: string | null
  readonly eraseAt: number
  /** When the key is free again. */
  readonly expiresAt: number
}
