import { type Agent, type AgentGrant, nameKey, type PreviousSecrets } from '../../domain/agent.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import type { AgentGrantRow, AgentRow, SigningKeyRow } from '../schema/rows.ts'
import { decodeJson, encodeJson } from './json.ts'

export function encodeAgent(agent: Agent): AgentRow {
  return {
    id: agent.id,
    name: agent.name,
    name_key: nameKey(agent.name),
    scopes: JSON.stringify(agent.scopes),
    version: agent.version,
    bearer_hash: agent.bearerHash,
    client_id: agent.clientId,
    client_secret_hash: agent.clientSecretHash,
    public_jwk: encodeJson(agent.publicJwk),
    signing_key_id: agent.signingKeyId,
    signing_email: agent.signingEmail,
    policy: agent.policy,
    created_by: agent.createdBy,
    created_at: agent.createdAt,
    expires_at: agent.expiresAt,
    ended_at: agent.endedAt,
    end_reason: agent.endReason,
    audiences: agent.audiences.length === 0 ? null : JSON.stringify(agent.audiences),
    bounds: encodeJson(agent.bounds),
    description: agent.description,
    rotation: agent.rotation === 0 ? null : agent.rotation,
    ...encodePrevious(agent.previous),
  }
}

export function encodePrevious(previous: PreviousSecrets | null) {
  return {
    previous_bearer_hash: previous?.bearerHash ?? null,
    previous_secret_hash: previous?.clientSecretHash ?? null,
    previous_until: previous?.until ?? null,
  }
}

function decodePrevious(row: AgentRow): PreviousSecrets | null {
  const {
    previous_bearer_hash: bearerHash,
    previous_secret_hash: clientSecretHash,
    previous_until: until,
  } = row
  return bearerHash === null || clientSecretHash === null || until === null
    ? null
    : { bearerHash, clientSecretHash, until }
}

export function decodeAgent(row: AgentRow): Agent {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    scopes: JSON.parse(row.scopes),
    audiences: decodeJson(row.audiences) ?? [],
    version: row.version,
    bearerHash: row.bearer_hash,
    clientId: row.client_id,
    clientSecretHash: row.client_secret_hash,
    rotation: row.rotation ?? 0,
    previous: decodePrevious(row),
    publicJwk: decodeJson(row.public_jwk),
    signingKeyId: row.signing_key_id,
    signingEmail: row.signing_email,
    policy: row.policy,
    bounds: decodeJson(row.bounds),
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    endedAt: row.ended_at,
    endReason: row.end_reason as Agent['endReason'],
  }
}

export function encodeGrant(grant: AgentGrant): AgentGrantRow {
  return {
    id: grant.id,
    agent_id: grant.agentId,
    scopes: JSON.stringify(grant.scopes),
    created_at: grant.createdAt,
    expires_at: grant.expiresAt,
  }
}

export function decodeGrant(row: AgentGrantRow): AgentGrant {
  return {
    id: row.id,
    agentId: row.agent_id,
    scopes: JSON.parse(row.scopes),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}

export function encodeSigningKey(key: SigningKey): SigningKeyRow {
  return {
    key_id: key.keyId,
    agent_id: key.agentId,
    name: key.name,
    email: key.email,
    public_key: key.publicKey,
    private_key: key.sealedPrivateKey,
    created_at: key.createdAt,
    ended_at: key.endedAt,
  }
}

export function decodeSigningKey(row: SigningKeyRow): SigningKey {
  return {
    keyId: row.key_id,
    agentId: row.agent_id,
    name: row.name,
    email: row.email,
    publicKey: row.public_key,
    sealedPrivateKey: row.private_key,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  }
}
