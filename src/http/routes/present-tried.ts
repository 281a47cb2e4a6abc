import type { Tried } from '../../core/credentials/try-backend.ts'
import type { Credential } from '../../domain/credential.ts'
import { optional, timestamp } from './wire.ts'

export function presentTried({ name, scopes, steps, credential, isEnded, warnings }: Tried) {
  return {
    name,
    scopes: [...scopes],
    steps: [...steps],
    ...(credential === undefined ? {} : { id: credential.id, expires_at: timestamp(credential.expiresAt) }),
    ended: isEnded,
    ...optional('note', credential === undefined || isEnded ? undefined : noteOf(credential)),
    ...optional('warnings', warnings.length === 0 ? undefined : warnings),
  }
}

function noteOf({ revocation, expiresAt, upstreamExpiresAt }: Credential): string {
  const until = timestamp(upstreamExpiresAt ?? expiresAt)
  return revocation === 'exact'
    ? `The upstream has not ended it yet. The server goes on trying, and it expires at ${until}. Nobody has its secret.`
    : `This kind cannot end a credential early: this one works until ${until}. Nobody has its secret.`
}
