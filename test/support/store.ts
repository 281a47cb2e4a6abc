import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Agent } from '../../src/domain/agent.ts'
import type { AuditEntry } from '../../src/domain/audit-entry.ts'
import type { Credential } from '../../src/domain/credential.ts'
import { type Enrollment, UNDECIDED } from '../../src/domain/enrollment.ts'
import { encodeTail, encodeTime } from '../../src/domain/ids.ts'
import type { IssuerKey } from '../../src/domain/issuer-key.ts'
import type { Operator } from '../../src/domain/people/operator.ts'
import type { Passkey, Session } from '../../src/domain/people/session.ts'
import type { SigningKey } from '../../src/domain/signing-key.ts'
import type { Engine } from '../../src/store/engine/engine.ts'
import { createStore, type Store } from '../../src/store/open.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import type {
  AgentRow,
  AuditRow,
  BackendRow,
  CredentialRow,
  IdempotencyRow,
} from '../../src/store/schema/rows.ts'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { codecs } from '../../src/store/tables/codecs.ts'
import { startPostgres } from './postgres.ts'

export const DIALECTS = ['sqlite', 'postgres'] as const

export interface TestStore {
  readonly engine: Engine
  readonly store: Store
  /** PostgreSQL only. */
  readonly url?: string
  /** Another node on the same database; PostgreSQL only. */
  another(): Promise<TestStore>
  close(): Promise<void>
}

/** A fresh real database of that kind; gone with `close`. */
export async function openTestStore(dialect: (typeof DIALECTS)[number]): Promise<TestStore> {
  if (dialect === 'sqlite') {
    const directory = await mkdtemp(join(tmpdir(), 'mayfly-store-'))
    const engine = await openSqlite({ directory })
    return {
      engine,
      store: createStore(engine),
      another: () => Promise.reject(new Error('one process, one file')),
      async close() {
        await engine.close()
        await rm(directory, { recursive: true, force: true })
      },
    }
  }
  const server = await startPostgres()
  const database = await server.createDatabase()
  const node = async (end: () => Promise<void>): Promise<TestStore> => {
    const engine = await openPostgres({ url: database.url })
    return {
      engine,
      url: database.url,
      store: createStore(engine),
      another: () => node(async () => {}),
      async close() {
        await engine.close()
        await end()
      },
    }
  }
  return node(async () => {
    await database.drop()
    await server.stop()
  })
}

let count = 0
/** Time-ordered and unique in this process. */
export function newBody(at = 1_800_000_000_000): string {
  count += 1
  const bytes = Uint8Array.from({ length: 13 }, (_, index) => (count >> (5 * (index % 6))) & 31)
  return encodeTime(at) + encodeTail(count & 4_095, bytes)
}

export const T0 = 1_800_000_000_000

export function agentRow(set: Partial<AgentRow> = {}): AgentRow {
  const id = set.id ?? `ag_${newBody()}`
  return {
    id,
    name: id,
    name_key: id,
    scopes: '[]',
    version: 1,
    bearer_hash: `bearer ${id}`,
    client_id: `agent_${id}`,
    client_secret_hash: 'hash',
    public_jwk: null,
    signing_key_id: 'key',
    signing_email: 'a@example.org',
    policy: null,
    created_by: 'local',
    created_at: T0,
    expires_at: null,
    ended_at: null,
    end_reason: null,
    audiences: null,
    bounds: null,
    description: null,
    rotation: null,
    previous_bearer_hash: null,
    previous_secret_hash: null,
    previous_until: null,
    owner: null,
    identity: null,
    identity_values: null,
    ...set,
  }
}

/** A living agent as core sees it; `agentRow` is the same as the database holds it. */
export function newAgent(set: Partial<Agent> = {}): Agent {
  const id = set.id ?? `ag_${newBody()}`
  return {
    id,
    name: id,
    description: null,
    rotation: 0,
    previous: null,
    scopes: [],
    audiences: [],
    bounds: null,
    version: 1,
    bearerHash: `bearer ${id}`,
    clientId: `agent_${id}`,
    clientSecretHash: 'hash',
    publicJwk: null,
    signingKeyId: 'key',
    signingEmail: 'a@example.org',
    policy: null,
    createdBy: 'local',
    owner: null,
    identity: null,
    identityValues: null,
    createdAt: T0,
    expiresAt: null,
    endedAt: null,
    endReason: null,
    ...set,
  }
}

export function newSigningKey(agentId: string): SigningKey {
  return {
    keyId: `key ${agentId}`,
    agentId,
    name: agentId,
    email: 'a@example.org',
    publicKey: 'public',
    sealedPrivateKey: 'sealed',
    createdAt: T0,
    endedAt: null,
  }
}

export function backendRow(set: Partial<BackendRow> = {}): BackendRow {
  const uid = set.uid ?? `be_${newBody()}`
  return {
    uid,
    name: uid,
    name_key: uid,
    type: 'fake',
    config: 'sealed',
    default_ttl_ms: 600_000,
    max_ttl_ms: 3_600_000,
    allowed_scopes: null,
    description: null,
    rate: null,
    max_active: null,
    version: 1,
    created_at: T0,
    changed_at: T0,
    ended_at: null,
    ending: null,
    rotation: null,
    rotate_root_after_ms: null,
    root_set_at: null,
    uses: null,
    ...set,
  }
}

export function credentialRow(set: Partial<CredentialRow> = {}): CredentialRow {
  return {
    id: `cred_${newBody()}`,
    agent_id: 'ag_1',
    agent_name: 'one',
    backend_uid: 'be_1',
    backend: 'db',
    scopes: '["read"]',
    state: 'active',
    revocation: 'exact',
    ttl_ms: 600_000,
    created_at: T0,
    expires_at: T0 + 600_000,
    upstream_expires_at: null,
    ended_at: null,
    end_reason: null,
    settled_at: null,
    due_at: T0 + 600_000,
    attempts: 0,
    stuck_at: null,
    secret_hash: 'keyed hash',
    handle: 'sealed',
    failure: null,
    run_id: null,
    ...set,
  }
}

/** As the store returns it. */
export function someCredential(set: Partial<Credential> = {}): Credential {
  return { ...codecs.credentials.decode(credentialRow()), ...set }
}

export function auditRow(set: Partial<AuditRow> = {}): AuditRow {
  return {
    id: newBody(),
    at: T0,
    action: 'credential.issued',
    outcome: 'ok',
    agent_id: '',
    agent_name: null,
    actor: 'local',
    backend: '',
    credential_id: null,
    scopes: null,
    ttl_ms: null,
    ip_address: null,
    user_agent: null,
    auth_method: null,
    request_id: null,
    metadata: null,
    details: null,
    run_id: null,
    ...set,
  }
}

export function newEntry(set: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: newBody(),
    at: T0,
    action: 'credential.issued',
    outcome: 'ok',
    agentId: null,
    agentName: null,
    actor: 'local',
    backend: null,
    credentialId: null,
    scopes: null,
    ttlMs: null,
    ipAddress: null,
    userAgent: null,
    authMethod: null,
    requestId: null,
    metadata: null,
    details: null,
    runId: null,
    ...set,
  }
}

export function issuerKey(set: Partial<IssuerKey> = {}): IssuerKey {
  return { kid: newBody(), publicJwk: {}, sealedPrivateKey: 's', createdAt: T0, retiresAt: null, ...set }
}

export function newEnrollment(set: Partial<Enrollment> = {}): Enrollment {
  return {
    id: `enr_${newBody()}`,
    type: 'enroll',
    name: 'ci',
    agentId: null,
    scopes: [],
    publicJwk: {},
    fingerprint: 'sha256',
    metadata: null,
    reason: null,
    lifetimeMs: null,
    ipAddress: '10.0.0.1',
    createdAt: T0,
    expiresAt: T0 + 1_000,
    ...UNDECIDED,
    ...set,
  }
}

export function idempotencyRow(set: Partial<IdempotencyRow> = {}): IdempotencyRow {
  return {
    agent_id: 'ag_1',
    key_hash: 'key',
    body_hash: 'body',
    credential_id: 'cred_1',
    reply: null,
    erase_at: T0 + 300_000,
    expires_at: T0 + 86_400_000,
    repeated_at: null,
    ...set,
  }
}

export function newOperator(set: Partial<Operator> = {}): Operator {
  const body = newBody()
  return {
    id: `op_${body}`,
    email: `${body}@example.com`,
    name: 'Alice',
    scopes: ['admin:*'],
    backendScopes: ['*'],
    version: 1,
    logins: 0,
    createdAt: T0,
    createdBy: 'local',
    joinedAt: null,
    lastLoginAt: null,
    endedAt: null,
    provider: null,
    issuer: null,
    subject: null,
    ...set,
  }
}

export function newSession(operatorId: string, set: Partial<Session> = {}): Session {
  const body = newBody()
  return {
    id: `ses_${body}`,
    operatorId,
    secretHash: `secret ${body}`,
    keyHash: `key ${body}`,
    method: 'link',
    passkeyId: null,
    version: 1,
    createdAt: T0,
    lastUsedAt: T0,
    expiresAt: T0 + 1_000,
    mayRegisterUntil: null,
    ipAddress: '192.0.2.1',
    userAgent: null,
    allowedBy: null,
    host: null,
    scopes: null,
    backendScopes: null,
    confirmedUntil: null,
    ...set,
  }
}

export function newPasskey(operatorId: string, set: Partial<Passkey> = {}): Passkey {
  const body = newBody()
  return {
    id: `pk_${body}`,
    operatorId,
    credentialId: `credential ${body}`,
    name: 'laptop',
    publicKey: 'pQECAyYgASFY',
    counter: 0,
    backup: 'none',
    transports: ['internal'],
    rpId: 'mayfly.test',
    createdAt: T0,
    lastUsedAt: null,
    ...set,
  }
}
