/**
 * Credentials without an upstream that were revoked before their expiry, for the lists that backends publish (ADR 0034).
 * Issuing and expiring add nothing to it.
 */
export function statements(): string[] {
  return [
    "CREATE INDEX credentials_revoked ON credentials (backend_uid, expires_at) WHERE state = 'revoked' AND revocation = 'none'",
  ]
}
