/** Why the proxy does not start, in words for the user. The command line knows it by its name. */
export class ProxyFailure extends Error {
  override readonly name = 'ProxyFailure'
  readonly code: string
  /** What to do next. */
  readonly hint: string

  constructor(code: string, message: string, hint: string) {
    super(message)
    this.code = code
    this.hint = hint
  }
}
