/** Refusals that only OAuth has words for; everything else that a use case refuses is a `Problem`. */
export type OAuthRefusalCode =
  | 'invalid_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unsupported_token_type'

/** RFC 6749 §5.2, RFC 7009 §2.2.1, RFC 8707 §2. The message is public and holds nothing that was sent. */
export class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal'
  readonly code: OAuthRefusalCode

  constructor(code: OAuthRefusalCode, message: string) {
    super(message)
    this.code = code
  }
}
