CREATE TABLE activity (
    span integer NOT NULL,
    at integer NOT NULL,
    backend text NOT NULL,
    action text NOT NULL,
    count integer NOT NULL,
    PRIMARY KEY (span, at, backend, action)
  ) STRICT, WITHOUT ROWID;
CREATE TABLE agent_grants (
    id text NOT NULL,
    agent_id text NOT NULL,
    scopes text NOT NULL,
    created_at integer NOT NULL,
    expires_at integer,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE agent_uses (
    agent_id text NOT NULL,
    last_used_at integer NOT NULL, ip_address text,
    PRIMARY KEY (agent_id)
  ) STRICT;
CREATE TABLE agents (
    id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    scopes text NOT NULL,
    version integer NOT NULL,
    bearer_hash text NOT NULL,
    client_id text NOT NULL,
    client_secret_hash text NOT NULL,
    public_jwk text,
    signing_key_id text NOT NULL,
    signing_email text NOT NULL,
    policy text,
    created_by text NOT NULL,
    created_at integer NOT NULL,
    expires_at integer,
    ended_at integer,
    end_reason text, audiences text, bounds text, description text, rotation integer, previous_bearer_hash text, previous_secret_hash text, previous_until integer, owner text, identity text, identity_values text,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE audit (
    id text NOT NULL,
    at integer NOT NULL,
    action text NOT NULL,
    outcome text NOT NULL,
    agent_id text NOT NULL,
    agent_name text,
    actor text NOT NULL,
    backend text NOT NULL,
    credential_id text,
    scopes text,
    ttl_ms integer,
    ip_address text,
    user_agent text,
    auth_method text,
    request_id text,
    metadata text,
    details text, run_id text,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE backends (
    uid text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    type text NOT NULL,
    config text,
    default_ttl_ms integer NOT NULL,
    max_ttl_ms integer NOT NULL,
    allowed_scopes text,
    description text,
    rate text,
    max_active integer,
    version integer NOT NULL,
    created_at integer NOT NULL,
    changed_at integer NOT NULL,
    ended_at integer, ending text, rotation text, rotate_root_after_ms integer, root_set_at integer, uses text,
    PRIMARY KEY (uid)
  ) STRICT;
CREATE TABLE challenges (
    challenge text NOT NULL,
    purpose text NOT NULL,
    session_id text NOT NULL,
    nonce text NOT NULL,
    made_at integer NOT NULL,
    expires_at integer NOT NULL, answer text,
    PRIMARY KEY (challenge)
  ) STRICT;
CREATE TABLE command_logins (
    code_hash text NOT NULL,
    kind text NOT NULL,
    user_code_hash text,
    state text NOT NULL,
    host text NOT NULL,
    ip_address text,
    user_agent text,
    operator_id text,
    session_id text,
    redirect_uri text,
    code_challenge text,
    polled_at integer,
    poll_ms integer,
    created_at integer NOT NULL,
    expires_at integer NOT NULL,
    PRIMARY KEY (code_hash)
  ) STRICT;
CREATE TABLE credentials (
    id text NOT NULL,
    agent_id text NOT NULL,
    agent_name text NOT NULL,
    backend_uid text NOT NULL,
    backend text NOT NULL,
    scopes text NOT NULL,
    state text NOT NULL,
    revocation text NOT NULL,
    ttl_ms integer NOT NULL,
    created_at integer NOT NULL,
    expires_at integer NOT NULL,
    upstream_expires_at integer,
    ended_at integer,
    end_reason text,
    settled_at integer,
    due_at integer,
    attempts integer NOT NULL,
    stuck_at integer,
    secret_hash text,
    handle text, failure text, run_id text,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE enrollments (
    id text NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    agent_id text,
    scopes text NOT NULL,
    public_jwk text,
    fingerprint text,
    metadata text,
    reason text,
    lifetime_ms integer,
    ip_address text,
    status text NOT NULL,
    note text,
    created_at integer NOT NULL,
    expires_at integer NOT NULL,
    decided_at integer,
    decided_by text,
    decision_note text,
    answer text,
    collect_until integer,
    collected_at integer,
    erase_at integer,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE idempotency (
    agent_id text NOT NULL,
    key_hash text NOT NULL,
    body_hash text NOT NULL,
    credential_id text NOT NULL,
    reply text,
    erase_at integer NOT NULL,
    expires_at integer NOT NULL, repeated_at integer,
    PRIMARY KEY (agent_id, key_hash)
  ) STRICT;
CREATE TABLE issuer_keys (
    kid text NOT NULL,
    public_jwk text NOT NULL,
    private_key text,
    created_at integer NOT NULL,
    retires_at integer,
    PRIMARY KEY (kid)
  ) STRICT;
CREATE TABLE login_links (
    secret_hash text NOT NULL,
    kind text NOT NULL,
    operator_id text,
    created_at integer NOT NULL,
    created_by text NOT NULL,
    expires_at integer NOT NULL,
    PRIMARY KEY (secret_hash)
  ) STRICT;
CREATE TABLE logins (
    jti text NOT NULL,
    agent_id text NOT NULL,
    expires_at integer NOT NULL,
    run_id text,
    PRIMARY KEY (jti)
  ) STRICT;
CREATE TABLE meta (
    key text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (key)
  ) STRICT;
CREATE TABLE operators (
    id text NOT NULL,
    email text,
    name text NOT NULL,
    scopes text NOT NULL,
    backend_scopes text NOT NULL,
    version integer NOT NULL,
    logins integer NOT NULL,
    created_at integer NOT NULL,
    created_by text NOT NULL,
    joined_at integer,
    last_login_at integer,
    ended_at integer,
    provider text,
    issuer text,
    subject text,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE passkeys (
    id text NOT NULL,
    operator_id text NOT NULL,
    credential_id text NOT NULL,
    name text NOT NULL,
    public_key text NOT NULL,
    counter integer NOT NULL,
    backup text NOT NULL,
    transports text NOT NULL,
    rp_id text NOT NULL,
    created_at integer NOT NULL,
    last_used_at integer,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE plugins (
    name text NOT NULL,
    version text NOT NULL,
    protocol text NOT NULL,
    runtime text NOT NULL,
    sha256 text NOT NULL,
    bytes integer NOT NULL,
    origin text NOT NULL,
    description text NOT NULL,
    added_at integer NOT NULL,
    PRIMARY KEY (name)
  ) STRICT;
CREATE TABLE receivers (
    name text NOT NULL,
    position text NOT NULL,
    told text NOT NULL,
    failing_since integer,
    holder text NOT NULL,
    held_until integer NOT NULL,
    PRIMARY KEY (name)
  ) STRICT;
CREATE TABLE revoked_tokens (
    jti text NOT NULL,
    expires_at integer NOT NULL,
    PRIMARY KEY (jti)
  ) STRICT;
CREATE TABLE run_beats (
    run_id text NOT NULL,
    heartbeat_ms integer NOT NULL,
    beat_at integer NOT NULL,
    due_at integer NOT NULL,
    PRIMARY KEY (run_id)
  ) STRICT;
CREATE TABLE run_request_counts (
    run_id text NOT NULL,
    total integer NOT NULL,
    kept integer NOT NULL,
    refused integer NOT NULL,
    redacted integer NOT NULL,
    PRIMARY KEY (run_id)
  ) STRICT;
CREATE TABLE run_requests (
    run_id text NOT NULL,
    id text NOT NULL,
    batch text NOT NULL,
    at integer NOT NULL,
    count integer NOT NULL,
    refused integer NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (run_id, id)
  ) STRICT;
CREATE TABLE runs (
    id text NOT NULL,
    agent_id text NOT NULL,
    agent_name text NOT NULL,
    purpose text,
    heartbeat_ms integer NOT NULL,
    version integer NOT NULL,
    started_at integer NOT NULL,
    expires_at integer,
    ended_at integer,
    reason text,
    ended_by text,
    last_beat integer,
    ip_address text,
    user_agent text,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE sessions (
    id text NOT NULL,
    operator_id text NOT NULL,
    secret_hash text NOT NULL,
    key_hash text NOT NULL,
    method text NOT NULL,
    passkey_id text,
    version integer NOT NULL,
    created_at integer NOT NULL,
    last_used_at integer NOT NULL,
    expires_at integer NOT NULL,
    may_register_until integer,
    ip_address text,
    user_agent text, allowed_by text, host text, scopes text, backend_scopes text, confirmed_until integer,
    PRIMARY KEY (id)
  ) STRICT;
CREATE TABLE signing_keys (
    key_id text NOT NULL,
    agent_id text NOT NULL,
    name text NOT NULL,
    email text NOT NULL,
    public_key text NOT NULL,
    private_key text,
    created_at integer NOT NULL,
    ended_at integer,
    PRIMARY KEY (agent_id)
  ) STRICT;
CREATE TABLE trusts (
    entry text NOT NULL,
    trusted_at integer NOT NULL,
    PRIMARY KEY (entry)
  ) STRICT;
CREATE TABLE used_proofs (
    id text NOT NULL,
    expires_at integer NOT NULL,
    PRIMARY KEY (id)
  ) STRICT;
CREATE INDEX agent_grants_agent ON agent_grants (agent_id);
CREATE INDEX agent_grants_ending ON agent_grants (expires_at) WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX agents_bearer ON agents (bearer_hash);
CREATE UNIQUE INDEX agents_client ON agents (client_id);
CREATE INDEX agents_ended ON agents (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX agents_ending ON agents (expires_at) WHERE ended_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX agents_identity ON agents (identity, id) WHERE ended_at IS NULL AND identity IS NOT NULL;
CREATE UNIQUE INDEX agents_living_name ON agents (name_key) WHERE ended_at IS NULL;
CREATE INDEX agents_name ON agents (name_key, id);
CREATE INDEX agents_policy ON agents (policy) WHERE ended_at IS NULL AND policy IS NOT NULL;
CREATE UNIQUE INDEX agents_previous_bearer ON agents (previous_bearer_hash) WHERE previous_bearer_hash IS NOT NULL;
CREATE INDEX audit_actor ON audit (actor, id) WHERE actor <> CASE WHEN action IN ('credential.expired', 'credential.settled') THEN 'system' ELSE agent_id END;
CREATE INDEX audit_actor_agent ON audit (actor, agent_id, backend, action, id) WHERE actor <> CASE WHEN action IN ('credential.expired', 'credential.settled') THEN 'system' ELSE agent_id END;
CREATE INDEX audit_actor_backend ON audit (actor, backend, action, id) WHERE actor <> CASE WHEN action IN ('credential.expired', 'credential.settled') THEN 'system' ELSE agent_id END;
CREATE INDEX audit_agent ON audit (agent_id, backend, action, id);
CREATE INDEX audit_backend ON audit (backend, action, id);
CREATE INDEX audit_credential ON audit (credential_id, id) WHERE credential_id IS NOT NULL;
CREATE INDEX audit_notable ON audit (id) WHERE action IN ('enrollment.requested', 'credential.revoke_failed', 'backend.down', 'backend.up', 'backend.root_aged', 'certificate.expiring', 'notification.dropped', 'placeholder.misused');
CREATE INDEX audit_run ON audit (run_id, id) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX backends_living_name ON backends (name_key) WHERE ended_at IS NULL;
CREATE INDEX command_logins_expiry ON command_logins (expires_at);
CREATE UNIQUE INDEX command_logins_user_code ON command_logins (user_code_hash) WHERE user_code_hash IS NOT NULL;
CREATE INDEX credentials_due ON credentials (backend_uid, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX credentials_living ON credentials (agent_id, id, run_id, ended_at) WHERE ended_at IS NULL;
CREATE INDEX credentials_open ON credentials (state, id) WHERE settled_at IS NULL;
CREATE INDEX credentials_open_backend ON credentials (backend, state, id) WHERE settled_at IS NULL;
CREATE INDEX credentials_revoked ON credentials (backend_uid, expires_at) WHERE state = 'revoked' AND revocation = 'none';
CREATE INDEX credentials_settled ON credentials (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX credentials_stuck ON credentials (backend_uid, id) WHERE stuck_at IS NOT NULL;
CREATE INDEX credentials_unsettled ON credentials (backend_uid, id) WHERE state IN ('pending', 'revoking');
CREATE INDEX enrollments_agent ON enrollments (agent_id, id) WHERE agent_id IS NOT NULL AND status = 'pending';
CREATE INDEX enrollments_claims ON enrollments (name) WHERE status = 'pending' AND type = 'claim';
CREATE INDEX enrollments_collect ON enrollments (collect_until) WHERE collect_until IS NOT NULL;
CREATE INDEX enrollments_erase ON enrollments (erase_at) WHERE erase_at IS NOT NULL;
CREATE INDEX enrollments_status ON enrollments (status, id);
CREATE INDEX enrollments_undecided ON enrollments (expires_at) WHERE status = 'pending';
CREATE INDEX idempotency_erase ON idempotency (erase_at) WHERE reply IS NOT NULL;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);
CREATE INDEX logins_agent ON logins (agent_id, expires_at);
CREATE INDEX logins_expiry ON logins (expires_at);
CREATE UNIQUE INDEX operators_living_email ON operators (email) WHERE ended_at IS NULL AND issuer IS NULL;
CREATE UNIQUE INDEX operators_living_subject ON operators (issuer, subject) WHERE ended_at IS NULL AND issuer IS NOT NULL;
CREATE UNIQUE INDEX passkeys_credential ON passkeys (credential_id);
CREATE INDEX passkeys_operator ON passkeys (operator_id);
CREATE INDEX revoked_tokens_expiry ON revoked_tokens (expires_at);
CREATE INDEX run_beats_due ON run_beats (due_at);
CREATE UNIQUE INDEX run_requests_batch ON run_requests (run_id, batch);
CREATE INDEX run_requests_refused ON run_requests (run_id, id) WHERE refused > 0;
CREATE INDEX runs_agent ON runs (agent_id, id);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_expiry ON runs (expires_at) WHERE ended_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX runs_living ON runs (agent_id, id) WHERE ended_at IS NULL;
CREATE INDEX runs_open ON runs (id) WHERE ended_at IS NULL;
CREATE INDEX sessions_operator ON sessions (operator_id);
CREATE UNIQUE INDEX sessions_secret ON sessions (secret_hash);
CREATE UNIQUE INDEX signing_keys_key ON signing_keys (key_id);
CREATE INDEX used_proofs_expiry ON used_proofs (expires_at);
