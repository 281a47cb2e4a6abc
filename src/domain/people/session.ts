import { SESSION_IDLE_MS } from '../limits.ts'

/** An operator who is logged in with one browser. Times are epoch ms. */
export interface Session {
  readonly id: string
  readonly operatorId: string
  readonly secretHash: string
  readonly keyHash: string
  readonly method: 'link' | 'invitation' | 'passkey'
  /** The passkey that started it. */
  readonly passkeyId: string | null
  /** Raised with every change of the operator. */
  readonly version: number
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly expiresAt: number
  /** Until when it may register one passkey without confirmation; null: it may not. */
  readonly mayRegisterUntil: number | null
  readonly ipAddress: string | null
  readonly userAgent: string | null
}

/** When the session ends unless it is used again. */
export function sessionEnd({ lastUsedAt, expiresAt }: Pick<Session, 'lastUsedAt' | 'expiresAt'>): number {
  return Math.min(expiresAt, lastUsedAt + SESSION_IDLE_MS)
}

/** A WebAuthn credential of an operator. */
export interface Passkey {
  readonly id: string
  readonly operatorId: string
  /** Base64url. */
  readonly credentialId: string
  readonly name: string
  /** COSE key, base64url. */
  readonly publicKey: string
  readonly counter: number
  /** Whether it can be, or is, copied to other devices (WebAuthn Level 3, §6.1.3). */
  readonly backup: 'none' | 'eligible' | 'backed_up'
  readonly transports: readonly string[]
  readonly rpId: string
  readonly createdAt: number
  readonly lastUsedAt: number | null
}

/**
 * A link that works once.
 * - `login`: logs an operator in.
 * - `invitation`: the same, made by another operator, and valid for longer.
 * - `first`: opens the form that makes the first operator; becomes a `naming`, with another secret.
 * - `naming`: makes the first operator.
 */
export interface LoginLink {
  readonly secretHash: string
  readonly kind: 'login' | 'invitation' | 'first' | 'naming'
  readonly operatorId: string | null
  readonly createdAt: number
  readonly createdBy: string
  readonly expiresAt: number
}

/** A challenge that a session was given, for one answer. */
export interface Challenge {
  /** Base64url. */
  readonly challenge: string
  readonly purpose: 'register' | 'confirm'
  readonly sessionId: string
  readonly nonce: string
  readonly madeAt: number
  readonly expiresAt: number
}
