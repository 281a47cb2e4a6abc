import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { IdempotencyRow } from '../schema/rows.ts'

/** Requests that carried an `Idempotency-Key`, and the credential that each of them was given. */
export function createIdempotency({ build, read }: Engine) {
  const ofCredential = (agentId: string, credentialId: string) =>
    build.deleteFrom('idempotency').where('agent_id', '=', agentId).where('credential_id', '=', credentialId)
  return {
    find: async (agentId: string, keyHash: string, now: number): Promise<IdempotencyRow | undefined> =>
      (
        await read<IdempotencyRow>(
          build
            .selectFrom('idempotency')
            .selectAll()
            .where('agent_id', '=', agentId)
            .where('key_hash', '=', keyHash)
            .where('expires_at', '>', now),
        )
      )[0],
    keepReply: (agentId: string, keyHash: string, reply: string, eraseAt: number): Step =>
      run(
        build
          .updateTable('idempotency')
          .set({ reply, erase_at: eraseAt })
          .where('agent_id', '=', agentId)
          .where('key_hash', '=', keyHash),
        1,
      ),
    /** The claim of this credential, and no later one under the same key. */
    release: (agentId: string, keyHash: string, credentialId: string): Step =>
      run(ofCredential(agentId, credentialId).where('key_hash', '=', keyHash), 'any'),
    /** As `release`, where the key is not known. */
    releaseOf: (agentId: string, credentialId: string): Step =>
      run(ofCredential(agentId, credentialId), 'any'),
  }
}
