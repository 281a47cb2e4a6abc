import type { IdempotencyRecord } from '../../domain/idempotency.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { IdempotencyRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

/** Requests that carried an `Idempotency-Key`. */
export function createIdempotency({ build, read }: Engine) {
  const ofCredential = (agentId: string, credentialId: string) =>
    build.deleteFrom('idempotency').where('agent_id', '=', agentId).where('credential_id', '=', credentialId)
  const ofKey = (agentId: string, keyHash: string) =>
    build.updateTable('idempotency').where('agent_id', '=', agentId).where('key_hash', '=', keyHash)
  return {
    /** Also finds a record that has expired and was not cleared away yet. */
    find: async (agentId: string, keyHash: string): Promise<IdempotencyRecord | undefined> => {
      const query = build
        .selectFrom('idempotency')
        .selectAll()
        .where('agent_id', '=', agentId)
        .where('key_hash', '=', keyHash)
      const [row] = await read<IdempotencyRow>(query)
      return row === undefined ? undefined : codecs.idempotency.decode(row)
    },
    /** Refused as not unique when the key is taken. */
    insert: (record: IdempotencyRecord): Step => insert('idempotency', codecs.idempotency.encode(record)),
    keepReply: (agentId: string, keyHash: string, sealedReply: string, eraseAt: number): Step =>
      run(ofKey(agentId, keyHash).set({ reply: sealedReply, erase_at: eraseAt }), 1),
    /** The record of this credential, and no later one under the same key. */
    release: (agentId: string, keyHash: string, credentialId: string): Step =>
      run(ofCredential(agentId, credentialId).where('key_hash', '=', keyHash), 'any'),
    /** A repetition gets the secret. Refused if the first request has taken the credential back. */
    markRepeated: (agentId: string, keyHash: string, credentialId: string, now: number): Step =>
      run(ofKey(agentId, keyHash).set({ repeated_at: now }).where('credential_id', '=', credentialId), 1),
    /** As `releaseOf`. Refused if a repetition has got the secret. */
    releaseUnrepeated: (agentId: string, credentialId: string): Step =>
      run(ofCredential(agentId, credentialId).where('repeated_at', 'is', null), 1),
    /** As `release`, if the key is not known. */
    releaseOf: (agentId: string, credentialId: string): Step =>
      run(ofCredential(agentId, credentialId), 'any'),
  }
}
