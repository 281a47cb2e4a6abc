import { randomBytes } from 'node:crypto'
import type { Backend, Handle, Issued, IssueRequest, Kind } from '../../backends/kind.ts'
import { encodeTail, encodeTime } from '../../domain/ids.ts'

/** Looks at the upstream itself, past the kind. Times are epoch ms. */
export interface Probe {
  /** Whether what the handle names is there. Absent where nothing is made upstream. */
  exists?(handle: Handle): Promise<boolean>
  /** Uses the credential as an agent would; throws or is false when it does not work. */
  use(issued: Issued): Promise<boolean>
  /** When the upstream itself ends it. Absent where it knows no expiry, so that only Mayfly ends the credential. */
  expiresAt?(issued: Issued): Promise<number>
}

/** What a holder does with a working credential so as not to lose it. Disposing of it gives everything up. */
export interface Hold extends AsyncDisposable {
  /** Whether anything of it still works: an open session, a new login, what it planted. False where that fails. */
  works(): Promise<boolean>
}

/** Ways to keep a credential, by name. The holds of all of them must be able to exist together. */
export type Tricks = Readonly<Record<string, (issued: Issued) => Promise<Hold>>>

export interface OpenKind {
  readonly kind: Kind
  readonly backend: Backend
  /** What the backend was opened with; needed where the kind says where its credentials are used. */
  readonly config?: object
  /** Scopes that can be granted here. */
  readonly scopes: readonly string[]
  readonly probe: Probe
  /** Fields that a credential has only with another configuration. */
  readonly absentFields?: readonly string[]
  /** All that the kind has logged so far. */
  logged(): string
  /** A second instance whose upstream cannot be reached; absent on kinds without an upstream. */
  unreachable?(): Promise<Backend>
  /** For kinds that speak HTTP: an instance whose upstream is `url`, which answers as nobody should. */
  hostile?(url: string): Promise<Backend>
  /** What the holder of a credential may try here, to keep it beyond its revocation. */
  readonly tricks?: Tricks
  /** A second instance whose upstream answers the call that ends an account as if it had worked, and does nothing. */
  disarmed?(): Promise<Backend>
  close(): Promise<void>
}

export function newCredentialId(now = Date.now()): string {
  return `cred_${encodeTime(now)}${encodeTail(0, randomBytes(13))}`
}

export function newRequest(
  scopes: readonly string[],
  options: { ttlMs?: number; params?: unknown } = {},
): IssueRequest<unknown> {
  const issuedAt = Date.now()
  return {
    credentialId: newCredentialId(issuedAt),
    agent: { id: `ag_${newCredentialId().slice(5)}`, name: 'contract' },
    scopes,
    params: options.params ?? {},
    issuedAt,
    expiresAt: issuedAt + (options.ttlMs ?? 600_000),
  }
}

export const never = () => AbortSignal.timeout(60_000)
