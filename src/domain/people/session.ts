import { SESSION_IDLE_MS } from '../limits.ts'

/** An operator who is logged in with one browser, or with one command. Times are epoch ms. */
export interface Session {
  readonly id: string
  readonly operatorId: string
  readonly secretHash: string
  /** Empty for a command, which has one secret: its `mop_` token. */
  readonly keyHash: string
  readonly method: 'link' | 'invitation' | 'passkey' | 'sso' | CommandMethod
  /** The passkey that started it, or the session that allowed it. */
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
  /** Of a command: the session that allowed it. When somebody ends that one, this one ends, too. */
  readonly allowedBy: string | null
  /** Of a command: the host that it runs on, as it says. */
  readonly host: string | null
  /** What single sign-on gave at this login. Null: what the operator holds. */
  readonly scopes: readonly string[] | null
  readonly backendScopes: readonly string[] | null
  /** Until when what a command asks for counts as confirmed. */
  readonly confirmedUntil: number | null
}

/** How a command was allowed: by a redirect to it (RFC 8252), or by a code that a person typed (RFC 8628). */
export const COMMAND_METHODS = ['browser', 'device'] as const
export type CommandMethod = (typeof COMMAND_METHODS)[number]

export const isCommand = ({ method }: Pick<Session, 'method'>): boolean =>
  COMMAND_METHODS.some((one) => one === method)

/** When the session ends unless it is used again. Nobody walks away from a command, so only a browser's ends idle. */
export function sessionEnd(session: Pick<Session, 'method' | 'lastUsedAt' | 'expiresAt'>): number {
  const { lastUsedAt, expiresAt } = session
  return isCommand(session) ? expiresAt : Math.min(expiresAt, lastUsedAt + SESSION_IDLE_MS)
}

/** A login of a command that waits for a person, or for the command to come for its token. Times are epoch ms. */
export interface CommandLogin {
  /** Keyed hash of the device code, or of the authorization code. */
  readonly codeHash: string
  readonly kind: CommandMethod
  /** Keyed hash of the code that a person types; only of a device. */
  readonly userCodeHash: string | null
  /** `used`: the token was handed out. Such a row stays, so that a second use of the code ends what the first began. */
  readonly state: 'waiting' | 'allowed' | 'denied' | 'used'
  readonly host: string
  readonly ipAddress: string | null
  readonly userAgent: string | null
  /** Who allowed it, with which session; once it is used, the session that it began. */
  readonly operatorId: string | null
  readonly sessionId: string | null
  /** Only of a browser (RFC 7636 §4.2 for the challenge). */
  readonly redirectUri: string | null
  readonly codeChallenge: string | null
  /** When the command last asked, and how many ms it has to wait in between; only of a device (RFC 8628 §3.5). */
  readonly polledAt: number | null
  readonly pollMs: number | null
  readonly createdAt: number
  readonly expiresAt: number
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
  /** What the provider of single sign-on said when the person logged in again for it. */
  readonly answer: SsoAnswer | null
}

/** Claims of the id token of such a login (OpenID Connect Core 1.0, §2). Times are seconds. */
export interface SsoAnswer {
  readonly issuer: string
  readonly subject: string
  readonly audience: string
  readonly authTime: number
  readonly issuedAt: number
}
