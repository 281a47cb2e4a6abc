/** The store is not opened as it is; its message tells the operator what to do. */
export class StoreRefused extends Error {
  override readonly name = 'StoreRefused'
}

/** The store cannot be read or written. Nothing was acknowledged. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
}
