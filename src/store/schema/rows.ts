/**
 * Every table, as rows are stored. Portable columns only: text, and bigint for epoch ms and counts. No
 * booleans (a nullable time says whether and when), no arrays (JSON as text), no dates.
 */
type Text = string
type Ms = number

export interface AgentRow {
  id: Text
  name: Text
  /** `name` in lower case; unique among the living. */
  name_key: Text
  /** JSON array. */
  scopes: Text
  /** Grows with every change that a cached caller must notice. */
  version: number
  bearer_hash: Text
  client_id: Text
  client_secret_hash: Text
  /** The enrolled public key as JSON (RFC 7517), for `private_key_jwt`. */
  public_jwk: Text | null
  signing_key_id: Text
  signing_email: Text
  /** The policy that admitted it, with the bounds it sets. */
  policy: Text | null
  created_by: Text
  created_at: Ms
  expires_at: Ms | null
  ended_at: Ms | null
  /** `deleted`, `expired` or `uncollected`. */
  end_reason: Text | null
  /** JSON array of what it may ask tokens for, beside the issuer and the audiences of the server; NULL is none. */
  audiences: Text | null
}

/** Extra scopes from an approved amendment. */
export interface AgentGrantRow {
  id: Text
  agent_id: Text
  scopes: Text
  created_at: Ms
  expires_at: Ms | null
}

export interface AgentUseRow {
  agent_id: Text
  last_used_at: Ms
}

export interface SigningKeyRow {
  key_id: Text
  agent_id: Text
  name: Text
  email: Text
  public_key: Text
  /** Sealed; null once the agent has ended. */
  private_key: Text | null
  created_at: Ms
  ended_at: Ms | null
}

export interface BackendRow {
  uid: Text
  name: Text
  name_key: Text
  type: Text
  /** Sealed JSON; null once the last credential of a deleted backend has ended. */
  config: Text | null
  default_ttl_ms: number
  max_ttl_ms: number
  /** JSON array; null permits everything. */
  allowed_scopes: Text | null
  description: Text | null
  rate: Text | null
  max_active: number | null
  version: number
  created_at: Ms
  changed_at: Ms
  ended_at: Ms | null
}

export interface CredentialRow {
  id: Text
  agent_id: Text
  agent_name: Text
  backend_uid: Text
  backend: Text
  /** JSON array, as asked. */
  scopes: Text
  state: Text
  /** What can be done upstream: `none` (there is no upstream), `exact` or `expiry_only`. */
  revocation: Text
  ttl_ms: number
  created_at: Ms
  expires_at: Ms
  upstream_expires_at: Ms | null
  /** Set when it leaves `active`, by whatever cause; the first time counts. */
  ended_at: Ms | null
  end_reason: Text | null
  /** Set when the upstream has been seen to be clean. */
  settled_at: Ms | null
  /** When the sweeper must look at it next; null when there is nothing left to do. */
  due_at: Ms | null
  attempts: number
  stuck_at: Ms | null
  secret_hash: Text | null
  /** Sealed JSON. */
  handle: Text | null
}

export interface IdempotencyRow {
  agent_id: Text
  key_hash: Text
  body_hash: Text
  credential_id: Text
  /** Sealed reply with the secret; null once it has been erased. */
  reply: Text | null
  erase_at: Ms
  expires_at: Ms
}

export interface EnrollmentRow {
  id: Text
  /** `enroll` or `amendment`. */
  type: Text
  name: Text
  name_key: Text
  agent_id: Text | null
  scopes: Text
  public_jwk: Text | null
  fingerprint: Text | null
  metadata: Text | null
  reason: Text | null
  /** What a decision on an amendment bounds: lifetime of the extra scopes, in ms. */
  lifetime_ms: number | null
  ip_address: Text | null
  status: Text
  /** Why a policy left it to the administrator. */
  note: Text | null
  created_at: Ms
  expires_at: Ms
  decided_at: Ms | null
  decided_by: Text | null
  decision_note: Text | null
  /** Sealed answer, until `erase_at`. */
  answer: Text | null
  collect_until: Ms | null
  collected_at: Ms | null
  erase_at: Ms | null
}

/** Values that may be used once: enrollment proofs and client assertions. */
export interface UsedProofRow {
  id: Text
  expires_at: Ms
}

export interface IssuerKeyRow {
  kid: Text
  public_jwk: Text
  /** Sealed PKCS #8. */
  private_key: Text | null
  created_at: Ms
  /** Verifies until then; null for the key that signs. */
  retires_at: Ms | null
}

export interface RevokedTokenRow {
  jti: Text
  expires_at: Ms
}

export interface AuditRow {
  /** Body of the `aud_` identifier: time-ordered. */
  id: Text
  at: Ms
  action: Text
  outcome: Text
  /** Empty, not null, where there is none: an index serves both. */
  agent_id: Text
  agent_name: Text | null
  actor: Text
  /** Empty, not null, where there is none. */
  backend: Text
  credential_id: Text | null
  scopes: Text | null
  ttl_ms: number | null
  ip_address: Text | null
  user_agent: Text | null
  auth_method: Text | null
  request_id: Text | null
  metadata: Text | null
  details: Text | null
}

/** Single values: schema version, key check, sealed data keys, generation, clock high-water mark. */
export interface MetaRow {
  key: Text
  value: Text
}

export interface Tables {
  meta: MetaRow
  agents: AgentRow
  agent_grants: AgentGrantRow
  agent_uses: AgentUseRow
  signing_keys: SigningKeyRow
  backends: BackendRow
  credentials: CredentialRow
  idempotency: IdempotencyRow
  enrollments: EnrollmentRow
  used_proofs: UsedProofRow
  issuer_keys: IssuerKeyRow
  revoked_tokens: RevokedTokenRow
  audit: AuditRow
}

export type Table = keyof Tables
