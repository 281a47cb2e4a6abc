export type Row = Readonly<Record<string, unknown>>

export interface Session {
  /** One statement. Values are bound. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Several statements of our own, in one round trip. The rows are the last one's. */
  run(statements: readonly string[]): Promise<readonly Row[]>
}

export interface Connections extends AsyncDisposable {
  /** Of one call, in ms. */
  readonly timeoutMs: number
  /** Throws `BackendError`. When `signal` fires the connection is cut, which rolls back what is open. */
  use<T>(database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
  /** Opens a connection if there is none: it stays open, for when the server has none left. Throws `BackendError`. */
  keepOne(signal: AbortSignal): Promise<void>
  /** In one transaction that takes no lock of ours: for ending what could block the others. */
  apart<T>(database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
  /** In one transaction, after all others of Mayfly in this database: see `beginLocked`. */
  change<T>(database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
  /** As `change`, and rolled back. */
  rehearse<T>(database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
}
