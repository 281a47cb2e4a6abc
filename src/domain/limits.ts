/** Every lifetime, size and default in one place. `_MS` is milliseconds, `_BYTES` bytes; the rest are counts. */
export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** A backend's default and longest ttl if the administrator sets none. */
export const DEFAULT_TTL_MS = HOUR_MS
export const DEFAULT_MAX_TTL_MS = 24 * HOUR_MS

/** Lifetime of an access token (specified: one hour). */
export const ACCESS_TOKEN_MS = HOUR_MS
/** Tolerated clock difference when checking a JWT. */
export const JWT_TOLERANCE_MS = 5_000
/** Longest accepted JWT. */
export const MAX_JWT_BYTES = 4_096

/** Keyless login: the longest token of somebody else, how exactly its times are taken, and how old it may be unless an entry says otherwise. */
export const MAX_FOREIGN_JWT_BYTES = 16_384
export const FOREIGN_TOLERANCE_MS = MINUTE_MS
export const FOREIGN_AGE_MS = 10 * MINUTE_MS

/** Body, free-form metadata and JSON nesting. */
export const MAX_BODY_BYTES = 65_536
/** Largest git object to sign: as base64 it still fits into a body. */
export const MAX_SIGN_BYTES = 48_000
export const MAX_METADATA_BYTES = 8_192
export const MAX_METADATA_KEYS = 64
export const MAX_JSON_DEPTH = 8
export const MAX_HEADERS = 100
export const MAX_HEADER_BYTES = 16_384
export const MAX_URL_BYTES = 8_192

/** Audit queries and every other listing. */
export const DEFAULT_PAGE = 100
export const MAX_PAGE = 1_000

/** Active credentials per agent. */
export const MAX_ACTIVE_PER_AGENT = 10_000

/** How often a run beats, unless it or the administrator says otherwise, and the bounds of that. */
export const HEARTBEAT_MS = 10_000
export const MIN_HEARTBEAT_MS = 1_000
export const MAX_HEARTBEAT_MS = HOUR_MS
/** Runs of one agent that live at once. */
export const MAX_RUNS_PER_AGENT = 10_000
export const MAX_PURPOSE_LENGTH = 500

/** How long the server keeps an `Idempotency-Key`, and the sealed secret with it. */
export const IDEMPOTENCY_MS = DAY_MS
export const IDEMPOTENT_SECRET_MS = 5 * MINUTE_MS

/** An enrollment is pending for a day, collectable for a day, and its answer kept for ten minutes after the first fetch. */
export const ENROLLMENT_MS = DAY_MS
export const COLLECT_MS = DAY_MS
export const ANSWER_MS = 10 * MINUTE_MS
export const ENROLLMENT_POLL_MS = 2_000
export const MAX_PENDING_ENROLLMENTS = 1_000
export const ENROLLMENTS_PER_MINUTE = 10
/** Proven polls per minute and enrollment; waiting requests for more scopes per agent. */
export const POLLS_PER_MINUTE = 120
export const MAX_REQUESTS_PER_AGENT = 10
/** Agents of a platform end this long after their last login: with rights, and without. */
export const PLATFORM_AGENT_MS = 30 * DAY_MS
export const UNCLAIMED_AGENT_MS = DAY_MS
/** How long an agent that goes on logging in waits in the inbox, and how many of one platform. */
export const CLAIM_MS = 30 * DAY_MS
export const MAX_PENDING_CLAIMS = 1_000
/** Largest difference between the time of a proof of possession and ours. */
export const PROOF_AGE_MS = MINUTE_MS

/** The description of the interface, its page and the page's script, per address: no machine needs them often. */
export const DOCUMENTS_PER_MINUTE = 300
/** Files of the console, per address. A browser that has none takes some twenty. */
export const CONSOLE_FILES_PER_MINUTE = 3_000

/** Streams of events, of one session or agent and of one node. */
export const MAX_STREAMS_PER_CALLER = 8
export const MAX_STREAMS = 1_000
/** Streams of runs, of one run, of one agent and of one node. */
export const MAX_STREAMS_PER_RUN = 8
export const MAX_RUN_STREAMS_PER_AGENT = 1_000
export const MAX_RUN_STREAMS = 4_000
/** Downloads of the audit that run at once, of one session or agent and of one node. */
export const MAX_EXPORTS_PER_CALLER = 2
export const MAX_EXPORTS = 8
/** How long the address of an export is good. */
export const EXPORT_TICKET_MS = MINUTE_MS

/** Failed logins at the token endpoint, per client and address. */
export const TOKEN_FAILURES_PER_MINUTE = 10
/** Access tokens that one agent gets, and that it revokes. */
export const TOKENS_PER_MINUTE = 600
/** Commits and tags that one agent has signed. */
export const SIGNATURES_PER_MINUTE = 600

/** A session of an operator: its longest life, how long it may be idle, and how exactly its last use is known. */
export const SESSION_MS = 12 * HOUR_MS
export const SESSION_IDLE_MS = 30 * MINUTE_MS
export const SESSION_USE_MS = MINUTE_MS
/** Of one operator; one more ends the oldest. */
export const MAX_SESSIONS = 20
export const MAX_PASSKEYS = 20
/** A link for one login, an invitation, and the time to type the name of the first operator. */
export const LOGIN_LINK_MS = MINUTE_MS
export const INVITATION_MS = DAY_MS
export const NAMING_MS = 10 * MINUTE_MS
/** After a login by a link, within which one passkey may be registered. */
export const REGISTER_MS = 10 * MINUTE_MS
/** Within which what the login of a command asks for counts as confirmed. */
export const COMMAND_CONFIRMED_MS = 15 * MINUTE_MS
/** A login of a command that waits for a person, and how often the command may ask (RFC 8628 §3.2). */
export const DEVICE_LOGIN_MS = 10 * MINUTE_MS
export const DEVICE_POLL_MS = 5_000
/** An authorization code (RFC 6749 §4.1.2: ten minutes at most). */
export const AUTHORIZATION_CODE_MS = MINUTE_MS
/** Logins of commands that wait at once, and how many begin per address. */
export const MAX_WAITING_LOGINS = 1_000
export const DEVICE_LOGINS_PER_MINUTE = 10
/** How long the answer to a challenge may take. */
export const CHALLENGE_MS = 5 * MINUTE_MS
/** Challenges that one session is given. */
export const CHALLENGES_PER_MINUTE = 60
/** A login under way at a provider of single sign-on. */
export const SSO_STATE_MS = 10 * MINUTE_MS
/** Failed logins and confirmations, per operator or link and address, and per address. */
export const LOGIN_FAILURES_PER_MINUTE = 10
export const LOGIN_FAILURES_PER_ADDRESS = 100

/** One call to an upstream, and its largest reply. */
export const UPSTREAM_TIMEOUT_MS = 10_000
export const MAX_UPSTREAM_BYTES = 262_144
/** All steps of replacing a root secret together (ADR 0033). */
export const longestRotationMs = (upstreamTimeoutMs: number) => 2 * upstreamTimeoutMs + 5_000

/** What a request may wait for the store besides. */
const STORE_MS = 15_000

/** The longest that a request may take, in ms: an issue that is withdrawn calls its upstream twice. */
export function longestRequest(upstreamTimeoutMs: number): number {
  return 2 * upstreamTimeoutMs + STORE_MS
}

/** Retries of a revocation: 1 s × 2^n with full jitter, capped; stuck after this many failures. */
export const RETRY_BASE_MS = 1_000
export const RETRY_CAP_MS = 15 * MINUTE_MS
export const STUCK_AFTER = 6

/** Longest text fields of requests. */
export const MAX_NAME_LENGTH = 128
export const MAX_TEXT_LENGTH = 1_024

/** How far the living credentials are counted in a list: of an agent, of a backend, and of what a request has left. */
export const MAX_COUNTED_OF_AGENT = 1_000
export const MAX_COUNTED_OF_BACKEND = 10_000
export const MAX_REMAINING = 10_000
/** Credentials that one request ends. */
export const MAX_REVOKED_AT_ONCE = 10_000
