import { type Agent, type AgentGrant, nameKey, type PreviousSecrets } from '../../domain/agent.ts'
import type { AuditEntry } from '../../domain/audit-entry.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import type { Credential } from '../../domain/credential.ts'
import type { Enrollment } from '../../domain/enrollment.ts'
import type { IdempotencyRecord } from '../../domain/idempotency.ts'
import type { IssuerKey } from '../../domain/issuer-key.ts'
import type { Operator } from '../../domain/people/operator.ts'
import type { Challenge, CommandLogin, LoginLink, Passkey, Session } from '../../domain/people/session.ts'
import type { StoredPlugin } from '../../domain/plugin.ts'
import type { StoredReceiver } from '../../domain/receiver.ts'
import type { Run } from '../../domain/run.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import { codecOf } from '../schema/codec.ts'
import type { AgentRow } from '../schema/rows.ts'

const agents = codecOf<Agent>()('agents', {
  json: ['scopes', 'public_jwk', 'bounds', 'identity_values'],
  columns: {
    name_key: ({ name }) => nameKey(name),
    audiences: ({ audiences }) => encodeAudiences(audiences),
    rotation: ({ rotation }) => (rotation === 0 ? null : rotation),
    previous_bearer_hash: ({ previous }) => previous?.bearerHash ?? null,
    previous_secret_hash: ({ previous }) => previous?.clientSecretHash ?? null,
    previous_until: ({ previous }) => previous?.until ?? null,
  },
  fields: {
    audiences: ({ audiences }) => (audiences === null ? [] : JSON.parse(audiences)),
    rotation: ({ rotation }) => rotation ?? 0,
    previous: decodePrevious,
  },
})

export function encodeAudiences(audiences: Agent['audiences']): string | null {
  return audiences.length === 0 ? null : JSON.stringify(audiences)
}

function decodePrevious(row: AgentRow): PreviousSecrets | null {
  const { previous_bearer_hash: bearerHash, previous_secret_hash: clientSecretHash } = row
  const { previous_until: until } = row
  return bearerHash === null || clientSecretHash === null || until === null
    ? null
    : { bearerHash, clientSecretHash, until }
}

/** Between rows and the objects of the domain, by table. */
export const codecs = {
  agents,
  agent_grants: codecOf<AgentGrant>()('agent_grants', { json: ['scopes'] }),
  signing_keys: codecOf<SigningKey>()('signing_keys', { rename: { private_key: 'sealedPrivateKey' } }),
  backends: codecOf<StoredBackend>()('backends', {
    json: ['allowed_scopes', 'ending', 'uses'],
    rename: { config: 'sealedConfig', rotation: 'sealedRotation' },
    columns: { name_key: ({ name }) => nameKey(name) },
  }),
  credentials: codecOf<Credential>()('credentials', { json: ['scopes'], rename: { handle: 'sealedHandle' } }),
  runs: codecOf<Run>()('runs', {
    fields: { reason: ({ reason }) => reason as Run['reason'] },
  }),
  idempotency: codecOf<IdempotencyRecord>()('idempotency', {
    rename: { reply: 'sealedReply' },
    columns: { repeated_at: () => null },
  }),
  enrollments: codecOf<Enrollment>()('enrollments', {
    json: ['scopes', 'public_jwk', 'metadata'],
    rename: { answer: 'sealedAnswer' },
    columns: { name_key: ({ name }) => nameKey(name) },
  }),
  issuer_keys: codecOf<IssuerKey>()('issuer_keys', {
    json: ['public_jwk'],
    rename: { private_key: 'sealedPrivateKey' },
  }),
  plugins: codecOf<StoredPlugin>()('plugins', { json: ['description'] }),
  receivers: codecOf<StoredReceiver>()('receivers', { json: ['told'] }),
  operators: codecOf<Operator>()('operators', { json: ['scopes', 'backend_scopes'] }),
  passkeys: codecOf<Passkey>()('passkeys', {
    json: ['transports'],
    fields: { backup: ({ backup }) => backup as Passkey['backup'] },
  }),
  sessions: codecOf<Session>()('sessions', {
    json: ['scopes', 'backend_scopes'],
    fields: { method: ({ method }) => method as Session['method'] },
  }),
  login_links: codecOf<LoginLink>()('login_links', {
    fields: { kind: ({ kind }) => kind as LoginLink['kind'] },
  }),
  challenges: codecOf<Challenge>()('challenges', {
    json: ['answer'],
    fields: { purpose: ({ purpose }) => purpose as Challenge['purpose'] },
  }),
  command_logins: codecOf<CommandLogin>()('command_logins', {
    fields: {
      kind: ({ kind }) => kind as CommandLogin['kind'],
      state: ({ state }) => state as CommandLogin['state'],
    },
  }),
  audit: codecOf<AuditEntry>()('audit', {
    json: ['scopes', 'metadata', 'details'],
    columns: { agent_id: ({ agentId }) => agentId ?? '', backend: ({ backend }) => backend ?? '' },
    fields: {
      agentId: ({ agent_id: id }) => (id === '' ? null : id),
      backend: ({ backend }) => (backend === '' ? null : backend),
    },
  }),
}
