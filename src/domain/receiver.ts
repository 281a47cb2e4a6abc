/** How far a receiver of notifications has been told, as it is stored. Times in epoch ms. */
export interface StoredReceiver {
  readonly name: string
  /** Body of an audit id: the entries up to here need not be told any more. */
  readonly position: string
  /** The entries after it that it has been told of. */
  readonly told: readonly string[]
  /** The first of the failures since it last took something. */
  readonly failingSince: number | null
  /** The run of the node that tells it. */
  readonly holder: string
  /** Any node may take it then. */
  readonly heldUntil: number
}
