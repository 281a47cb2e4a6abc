/** The server refused the login, in its own words, which are for the child as they are. */
export class ServerError extends Error {
  override readonly name = 'ServerError'
  /** Its message, or the payload of its packet. */
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    super('the server refused the login')
    this.bytes = bytes
  }
}
