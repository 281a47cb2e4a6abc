/** For what may still be open, although it is of no use any more. */
const MOST_MS = 2_000

/**
 * Lets this process end once its command is over. Without that, Node waits for every handle, and for ever, on a whole processor,
 * for a TLS or HTTP/2 stream whose connection was reset beneath it.
 */
export function leaveSoon(): void {
  process.once('beforeExit', () => process.exit())
  setTimeout(() => process.exit(), MOST_MS).unref()
}
