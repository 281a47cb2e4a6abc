export type Row = Readonly<Record<string, unknown>>

export interface Session {
  /** One statement. Values are bound. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * Several statements of our own, in one round trip and, outside of `begin`, one transaction. The rows are those of the last
   * statement that returned any.
   */
  run(statements: readonly string[]): Promise<readonly Row[]>
}

export interface Connections extends AsyncDisposable {
  /** Of one call, in ms. */
  readonly timeoutMs: number
  /** Throws `BackendError`. When `signal` fires the connection is cut, which rolls back what is open. */
  use<T>(database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
  /** Opens a connection if there is none: it stays open, for when the server has none left. Throws `BackendError`. */
  keepOne(signal: AbortSignal): Promise<void>
  /** Whether the server has asked for the password: one that trusts everybody never does. */
  readonly askedPassword: boolean
}

/** Of every transaction of ours. Names are looked up in pg_catalog alone, so that no foreign operator runs with our rights. */
export function preamble(timeoutMs: number): string[] {
  // Two statements may each wait so long: nothing is under way for longer than one call.
  const each = Math.floor(timeoutMs / 2)
  return [
    'SET LOCAL search_path = pg_catalog',
    'SET LOCAL client_min_messages = warning',
    `SET LOCAL statement_timeout = ${each}`,
    `SET LOCAL lock_timeout = ${Math.floor(each / 2)}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${timeoutMs}`,
  ]
}

/** Runs the statements in one transaction and one round trip. Throws `BackendError`. */
export function transact(
  connections: Connections,
  database: string,
  signal: AbortSignal,
  statements: readonly string[],
): Promise<readonly Row[]> {
  return connections.use(database, signal, (session) =>
    session.run([...preamble(connections.timeoutMs), ...statements]),
  )
}

/** Does the work in one transaction, which is committed or rolled back at the end. Throws `BackendError`. */
export function within<T>(
  connections: Connections,
  database: string,
  signal: AbortSignal,
  end: 'COMMIT' | 'ROLLBACK',
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return connections.use(database, signal, async (session) => {
    await session.run(['BEGIN', ...preamble(connections.timeoutMs)])
    const result = await work(session)
    await session.run([end])
    return result
  })
}
