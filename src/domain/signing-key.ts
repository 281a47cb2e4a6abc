/** The OpenPGP key that an agent signs commits and tags with. Times in epoch ms. */
export interface SigningKey {
  readonly keyId: string
  readonly agentId: string
  readonly name: string
  readonly email: string
  readonly publicKey: string
  /** Null once the agent has ended. */
  readonly sealedPrivateKey: string | null
  readonly createdAt: number
  readonly endedAt: number | null
}
