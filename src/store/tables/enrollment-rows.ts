import { nameKey } from '../../domain/agent.ts'
import type { Enrollment } from '../../domain/enrollment.ts'
import type { EnrollmentRow } from '../schema/rows.ts'
import { decodeJson, encodeJson } from './json.ts'

export function encodeEnrollment(enrollment: Enrollment): EnrollmentRow {
  return {
    id: enrollment.id,
    type: enrollment.type,
    name: enrollment.name,
    name_key: nameKey(enrollment.name),
    agent_id: enrollment.agentId,
    scopes: JSON.stringify(enrollment.scopes),
    public_jwk: encodeJson(enrollment.publicJwk),
    fingerprint: enrollment.fingerprint,
    metadata: encodeJson(enrollment.metadata),
    reason: enrollment.reason,
    lifetime_ms: enrollment.lifetimeMs,
    ip_address: enrollment.ipAddress,
    status: enrollment.status,
    note: enrollment.note,
    created_at: enrollment.createdAt,
    expires_at: enrollment.expiresAt,
    decided_at: enrollment.decidedAt,
    decided_by: enrollment.decidedBy,
    decision_note: enrollment.decisionNote,
    answer: enrollment.sealedAnswer,
    collect_until: enrollment.collectUntil,
    collected_at: enrollment.collectedAt,
    erase_at: enrollment.eraseAt,
  }
}

export function decodeEnrollment(row: EnrollmentRow): Enrollment {
  return {
    id: row.id,
    type: row.type as Enrollment['type'],
    name: row.name,
    agentId: row.agent_id,
    scopes: JSON.parse(row.scopes),
    publicJwk: decodeJson(row.public_jwk),
    fingerprint: row.fingerprint,
    metadata: decodeJson(row.metadata),
    reason: row.reason,
    lifetimeMs: row.lifetime_ms,
    ipAddress: row.ip_address,
    status: row.status as Enrollment['status'],
    note: row.note,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    decidedAt: row.decided_at,
    decidedBy: row.decided_by,
    decisionNote: row.decision_note,
    sealedAnswer: row.answer,
    collectUntil: row.collect_until,
    collectedAt: row.collected_at,
    eraseAt: row.erase_at,
  }
}
