import { sql } from 'kysely'
import type { Engine } from '../engine/engine.ts'

export interface RevokedRow {
  readonly id: string
  /** Epoch ms. */
  readonly endedAt: number
}

/** Credentials without an upstream that were revoked and have not expired: any number, so in slices. */
export function revokedReads({ build, scan }: Engine) {
  const livingAt = (backendUid: string, now: number) =>
    build.selectFrom('credentials').where('backend_uid', '=', backendUid).where('expires_at', '>', now)
  return {
    revokedOfBackend: (backendUid: string, now: number): AsyncIterable<RevokedRow[]> => {
      const revoked = livingAt(backendUid, now)
        .select(['id', 'ended_at as endedAt'])
        // As in the index: bare parameters would hide that it fits.
        .where(sql<boolean>`state = 'revoked' AND revocation = 'none'`)
      return scan<RevokedRow>(revoked)
    },
    /** Those that have ended with their agent, whose rows do not say so yet (ADR 0023). */
    unfinishedOfBackend: (
      backendUid: string,
      now: number,
      agentId: string,
    ): AsyncIterable<{ readonly id: string }[]> =>
      scan(
        livingAt(backendUid, now)
          .select('id')
          .where('agent_id', '=', agentId)
          .where('ended_at', 'is', null)
          .where(sql<boolean>`state = 'active' AND revocation = 'none'`),
      ),
  }
}
