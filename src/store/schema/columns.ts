import { bigint, type Column, nullable, text } from './column.ts'
import { KEYLESS_COLUMNS } from './keyless-columns.ts'
import { RUN_COLUMNS } from './run-columns.ts'

export type { Column } from './column.ts'

/**
 * Every table and its columns: the one source of the row types (`rows.ts`), the insert statements and the array
 * parameters. Column types are the ones that both databases share: text, and bigint for epoch ms and counts. There
 * are no booleans (a nullable time says whether and when), no arrays (JSON as text) and no dates.
 */
export const COLUMNS = {
  /** Single values, such as the key check, sealed data keys and the generation. */
  meta: {
    key: text,
    value: text,
  },
  agents: {
    id: text,
    name: text,
    /** `name` in lower case; unique among agents that have not ended. */
    name_key: text,
    /** JSON array. */
    scopes: text,
    /** Raised by every change that a cached caller must notice. */
    version: bigint,
    bearer_hash: text,
    client_id: text,
    client_secret_hash: text,
    /** The enrolled public key as JSON (RFC 7517), for `private_key_jwt`. */
    public_jwk: nullable(text),
    signing_key_id: text,
    signing_email: text,
    /** The policy that the agent came under, or the agent that created it. */
    policy: nullable(text),
    created_by: text,
    created_at: bigint,
    expires_at: nullable(bigint),
    ended_at: nullable(bigint),
    /** `deleted`, `expired`, `uncollected`, `untrusted` or `logged_out`. */
    end_reason: nullable(text),
    /** JSON array of the audiences this agent may request besides the issuer and the server's own; null for none. */
    audiences: nullable(text),
    /** JSON object; null: none, or recorded by an earlier build. */
    bounds: nullable(text),
    description: nullable(text),
    /** How often the secrets were replaced; null: never. */
    rotation: nullable(bigint),
    /** The secrets before the last rotation, if they are accepted for a while: all three or none. */
    previous_bearer_hash: nullable(text),
    previous_secret_hash: nullable(text),
    previous_until: nullable(bigint),
    /** Who answers for it; null: who created it. */
    owner: nullable(text),
    /** `identity:` or `platform:` and the name of the entry that it came under; null for an agent with secrets. */
    identity: nullable(text),
    /** JSON array: what it is bound to, the issuer first. */
    identity_values: nullable(text),
  },
  /** Extra scopes from an approved amendment. */
  agent_grants: {
    id: text,
    agent_id: text,
    scopes: text,
    created_at: bigint,
    expires_at: nullable(bigint),
  },
  agent_uses: {
    agent_id: text,
    last_used_at: bigint,
    /** From where; null: recorded by an earlier build. */
    ip_address: nullable(text),
  },
  signing_keys: {
    key_id: text,
    agent_id: text,
    name: text,
    email: text,
    public_key: text,
    /** Sealed; null once the agent has ended. */
    private_key: nullable(text),
    created_at: bigint,
    ended_at: nullable(bigint),
  },
  backends: {
    uid: text,
    name: text,
    name_key: text,
    type: text,
    /** Sealed JSON; null once the last credential of a deleted backend is settled. */
    config: nullable(text),
    default_ttl_ms: bigint,
    max_ttl_ms: bigint,
    /** JSON array; null permits everything. */
    allowed_scopes: nullable(text),
    description: nullable(text),
    rate: nullable(text),
    max_active: nullable(bigint),
    version: bigint,
    created_at: bigint,
    changed_at: bigint,
    ended_at: nullable(bigint),
    /** JSON, while it is being deleted: since when, and who deletes it, for the entries of its credentials. */
    ending: nullable(text),
    /** Sealed JSON, while its root secret is being replaced. */
    rotation: nullable(text),
    /** The age at which its root secret should be replaced; null: none. */
    rotate_root_after_ms: nullable(bigint),
    /** When its root secret was last entered or replaced; null: when it was created, or by an earlier build. */
    root_set_at: nullable(bigint),
    /** JSON: where and how its credentials are used, beside what its kind says. */
    uses: nullable(text),
  },
  credentials: {
    id: text,
    agent_id: text,
    agent_name: text,
    backend_uid: text,
    backend: text,
    /** JSON array, as requested. */
    scopes: text,
    state: text,
    /** How the upstream revokes: `none` (there is no upstream), `exact` or `expiry_only`. */
    revocation: text,
    ttl_ms: bigint,
    created_at: bigint,
    expires_at: bigint,
    upstream_expires_at: nullable(bigint),
    /** Set when the credential first leaves `active`, for any reason. */
    ended_at: nullable(bigint),
    end_reason: nullable(text),
    /** Set once the upstream no longer holds any part of this credential. */
    settled_at: nullable(bigint),
    /** When the sweeper looks at it next; null when nothing is left to do. */
    due_at: nullable(bigint),
    attempts: bigint,
    stuck_at: nullable(bigint),
    secret_hash: nullable(text),
    /** Sealed JSON. */
    handle: nullable(text),
    /** Why ending it upstream failed last, while it is `revoking`; null: it has not, or an earlier build tried. */
    failure: nullable(text),
    /** The run that it ends with; null: none. */
    run_id: nullable(text),
  },
  ...RUN_COLUMNS,
  idempotency: {
    agent_id: text,
    key_hash: text,
    body_hash: text,
    credential_id: text,
    /** Sealed reply, which includes the secret; null once erased. */
    reply: nullable(text),
    erase_at: bigint,
    expires_at: bigint,
    /** When a repetition of the request was last told the secret. */
    repeated_at: nullable(bigint),
  },
  enrollments: {
    id: text,
    /** `enroll`, `amendment` or `claim`. */
    type: text,
    name: text,
    name_key: text,
    agent_id: nullable(text),
    scopes: text,
    public_jwk: nullable(text),
    fingerprint: nullable(text),
    metadata: nullable(text),
    reason: nullable(text),
    /** Amendments: lifetime of the extra scopes in ms, which the decision sets. */
    lifetime_ms: nullable(bigint),
    ip_address: nullable(text),
    status: text,
    /** Why a policy left the decision to the administrator. */
    note: nullable(text),
    created_at: bigint,
    expires_at: bigint,
    decided_at: nullable(bigint),
    decided_by: nullable(text),
    decision_note: nullable(text),
    /** Sealed answer; erased at `erase_at`. */
    answer: nullable(text),
    collect_until: nullable(bigint),
    collected_at: nullable(bigint),
    erase_at: nullable(bigint),
  },
  /** Values that may be used only once: enrollment proofs and client assertions. */
  used_proofs: {
    id: text,
    expires_at: bigint,
  },
  ...KEYLESS_COLUMNS,
  issuer_keys: {
    kid: text,
    public_jwk: text,
    /** Sealed PKCS #8. */
    private_key: nullable(text),
    created_at: bigint,
    /** The key verifies until then; null for the key that signs. */
    retires_at: nullable(bigint),
  },
  revoked_tokens: {
    jti: text,
    expires_at: bigint,
  },
  plugins: {
    name: text,
    version: text,
    protocol: text,
    /** `executable` or `node`. */
    runtime: text,
    sha256: text,
    bytes: bigint,
    origin: text,
    /** JSON object. */
    description: text,
    added_at: bigint,
  },
  /** The receivers of notifications. */
  receivers: {
    name: text,
    /** Body of an audit id. */
    position: text,
    /** JSON array of such bodies. */
    told: text,
    failing_since: nullable(bigint),
    holder: text,
    held_until: bigint,
  },
  operators: {
    id: text,
    /** In lower case. Null: their provider of single sign-on has not verified one. */
    email: nullable(text),
    name: text,
    /** JSON array of admin scopes. */
    scopes: text,
    /** JSON array of scopes of backends, which the operator may grant to agents. */
    backend_scopes: text,
    version: bigint,
    /** How many sessions were started: two logins at once see each other by it. */
    logins: bigint,
    created_at: bigint,
    created_by: text,
    /** When the operator first logged in. */
    joined_at: nullable(bigint),
    last_login_at: nullable(bigint),
    ended_at: nullable(bigint),
    /** The name of the entry of `sso` by which they logged in; null for one who was invited here, as are the next two. */
    provider: nullable(text),
    /** Who they are: unique together among operators that have not ended. */
    issuer: nullable(text),
    subject: nullable(text),
  },
  passkeys: {
    id: text,
    operator_id: text,
    /** Base64url, as the authenticator made it. */
    credential_id: text,
    name: text,
    /** COSE key, base64url. */
    public_key: text,
    counter: bigint,
    /** `none`, `eligible` or `backed_up`. */
    backup: text,
    /** JSON array. */
    transports: text,
    /** The relying party that it belongs to: a host name. */
    rp_id: text,
    created_at: bigint,
    last_used_at: nullable(bigint),
  },
  sessions: {
    id: text,
    operator_id: text,
    /** Keyed hash of what the cookie holds, or of the `mop_` token of a command. */
    secret_hash: text,
    /** Keyed hash of the key that the page holds; empty for a command. */
    key_hash: text,
    /** `link`, `invitation`, `passkey` or `sso`; of a command `browser` or `device`. */
    method: text,
    passkey_id: nullable(text),
    /** Raised with every change of the operator. */
    version: bigint,
    created_at: bigint,
    last_used_at: bigint,
    expires_at: bigint,
    /** Until when it may register one passkey without confirmation. */
    may_register_until: nullable(bigint),
    ip_address: nullable(text),
    user_agent: nullable(text),
    /** Of a command: the session that allowed it. */
    allowed_by: nullable(text),
    /** Of a command: the host that it runs on, as it says. */
    host: nullable(text),
    /** JSON array: the admin scopes that single sign-on gave at this login. Null: those of the operator. */
    scopes: nullable(text),
    backend_scopes: nullable(text),
    /** Until when what a command asks for counts as confirmed. */
    confirmed_until: nullable(bigint),
  },
  /** Links that log somebody in once. */
  login_links: {
    secret_hash: text,
    /** `login`, `invitation`, `first` or `naming`. */
    kind: text,
    /** Null for the links that make the first operator. */
    operator_id: nullable(text),
    created_at: bigint,
    created_by: text,
    expires_at: bigint,
  },
  /** Challenges that sessions were given, each for one answer. */
  challenges: {
    challenge: text,
    /** `register` or `confirm`. */
    purpose: text,
    session_id: text,
    nonce: text,
    made_at: bigint,
    expires_at: bigint,
    /** JSON: what the provider of single sign-on said when the person logged in again for it. */
    answer: nullable(text),
  },
  /** Logins of commands, each until its token was handed out. */
  command_logins: {
    /** Keyed hash of the device code, or of the authorization code. */
    code_hash: text,
    /** `device` or `browser`. */
    kind: text,
    /** Keyed hash of the code that a person types; only of a device. */
    user_code_hash: nullable(text),
    /** `waiting`, `allowed`, `denied` or `used`. */
    state: text,
    /** The host that the command runs on, as it says, and where it asked from. */
    host: text,
    ip_address: nullable(text),
    user_agent: nullable(text),
    /** Who allowed it, with which session; once it is used, the session that it began. */
    operator_id: nullable(text),
    session_id: nullable(text),
    /** RFC 8252 and RFC 7636; only of a browser. */
    redirect_uri: nullable(text),
    code_challenge: nullable(text),
    /** RFC 8628 §3.5: when the command last asked, and how many ms it has to wait in between; only of a device. */
    polled_at: nullable(bigint),
    poll_ms: nullable(bigint),
    created_at: bigint,
    expires_at: bigint,
  },
  /** How many entries of the audit are about each backend and action, by time. */
  activity: {
    /** How long the counted time is, in ms. */
    span: bigint,
    /** When it begins: a multiple of `span`. */
    at: bigint,
    /** As in the audit: empty where there is none. */
    backend: text,
    action: text,
    count: bigint,
  },
  audit: {
    /** Body of the `aud_` id; time-ordered. */
    id: text,
    at: bigint,
    action: text,
    outcome: text,
    /** Empty, not null, where there is none, so that one index serves both cases. */
    agent_id: text,
    agent_name: nullable(text),
    actor: text,
    /** Empty, not null, where there is none. */
    backend: text,
    credential_id: nullable(text),
    scopes: nullable(text),
    ttl_ms: nullable(bigint),
    ip_address: nullable(text),
    user_agent: nullable(text),
    auth_method: nullable(text),
    request_id: nullable(text),
    metadata: nullable(text),
    details: nullable(text),
    /** The run that it is about, or that it was done for; null: none. */
    run_id: nullable(text),
  },
} as const satisfies Record<string, Record<string, Column>>

export type Table = keyof typeof COLUMNS

/** Names in insert order. */
export function columnNames(table: Table): readonly string[] {
  return Object.keys(COLUMNS[table])
}

/** Names and PostgreSQL types in insert order. */
export function columnTypes(table: Table): readonly (readonly [name: string, type: Column['type']])[] {
  return Object.entries<Column>(COLUMNS[table]).map(([name, { type }]) => [name, type])
}
