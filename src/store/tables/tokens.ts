import { type RawBuilder, sql } from 'kysely'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { IdempotencyRow, IssuerKeyRow } from '../schema/rows.ts'

/** What the token endpoint and repeated requests need: issuer keys, revoked tokens, used proofs, idempotency. */
export function createTokens(engine: Engine) {
  return { ...issuerKeys(engine), ...idempotency(engine), ...tidying(engine) }
}

function issuerKeys({ build, read }: Engine) {
  return {
    /** Those that sign or still verify at `now`, newest first. */
    issuerKeys: (now: number): Promise<IssuerKeyRow[]> =>
      read<IssuerKeyRow>(
        build
          .selectFrom('issuer_keys')
          .selectAll()
          .where((e) => e.or([e('retires_at', 'is', null), e('retires_at', '>', now)]))
          .orderBy('created_at', 'desc')
          .orderBy('kid', 'desc'),
      ),
    /** At once, or verifying until `until` with its private key gone. */
    retireIssuerKeys: (until: number | undefined): Step =>
      until === undefined
        ? run(build.deleteFrom('issuer_keys'), 'any')
        : run(
            build
              .updateTable('issuer_keys')
              .set({ retires_at: until, private_key: null })
              .where('retires_at', 'is', null),
            'any',
          ),
    isRevoked: async (jti: string): Promise<boolean> =>
      (await read<{ jti: string }>(build.selectFrom('revoked_tokens').select('jti').where('jti', '=', jti)))
        .length > 0,
    revokedAfter: (now: number): Promise<{ jti: string; expires_at: number }[]> =>
      read(build.selectFrom('revoked_tokens').selectAll().where('expires_at', '>', now)),
  }
}

function idempotency({ build, read }: Engine) {
  return {
    findIdempotent: async (
      agentId: string,
      keyHash: string,
      now: number,
    ): Promise<IdempotencyRow | undefined> =>
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
    /** As `forgetIdempotent`, for who does not know the key. */
    forgetIdempotentOf: (agentId: string, credentialId: string): Step =>
      run(
        build
          .deleteFrom('idempotency')
          .where('agent_id', '=', agentId)
          .where('credential_id', '=', credentialId),
        'any',
      ),
    /** The claim of this credential, and of no later one by the same key. */
    forgetIdempotent: (agentId: string, keyHash: string, credentialId: string): Step =>
      run(
        build
          .deleteFrom('idempotency')
          .where('agent_id', '=', agentId)
          .where('key_hash', '=', keyHash)
          .where('credential_id', '=', credentialId),
        'any',
      ),
  }
}

/** Rows that have run out, by the time in this column: deleted. */
const ENDING = [
  { table: 'idempotency', key: ['agent_id', 'key_hash'], end: 'expires_at' },
  { table: 'used_proofs', key: ['id'], end: 'expires_at' },
  { table: 'revoked_tokens', key: ['jti'], end: 'expires_at' },
  { table: 'issuer_keys', key: ['kid'], end: 'retires_at' },
] as const
/** Rows of one table in one commit: after a day's stop there may be a million. */
const SLICE = 1_000

function tidying({ build, read }: Engine) {
  const step = (statement: RawBuilder<unknown>): Step =>
    run({ compile: () => statement.compile(build) }, 'any')
  const ended = ({ table, end }: (typeof ENDING)[number], now: number) =>
    sql`FROM ${sql.table(table)} WHERE ${sql.ref(end)} <= ${now}`
  const erasable = (now: number) => sql`FROM idempotency WHERE erase_at <= ${now} AND reply IS NOT NULL`
  const some = (key: readonly string[], which: RawBuilder<unknown>) => {
    const columns = sql.join(key.map((name) => sql.ref(name)))
    return sql`(${columns}) IN (SELECT ${columns} ${which} LIMIT ${sql.lit(SLICE)})`
  }
  return {
    /** Some of whatever has run out: sealed replies, remembered keys, used proofs, revoked and retired. */
    tidy: (now: number): Step[] => [
      step(sql`UPDATE idempotency SET reply = NULL WHERE ${some(['agent_id', 'key_hash'], erasable(now))}`),
      ...ENDING.map((one) =>
        step(sql`DELETE FROM ${sql.table(one.table)} WHERE ${some(one.key, ended(one, now))}`),
      ),
    ],
    /** Whether `tidy` would find something. */
    isUntidy: async (now: number): Promise<boolean> => {
      for (const which of [erasable(now), ...ENDING.map((one) => ended(one, now))]) {
        const first = sql<{ found: number }>`SELECT 1 AS found ${which} LIMIT 1`
        if ((await read<{ found: number }>({ compile: () => first.compile(build) })).length > 0) return true
      }
      return false
    },
  }
}
