import { type RawBuilder, sql } from 'kysely'
import type { IssuerKey } from '../../domain/issuer-key.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { IssuerKeyRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

/** Tables of the token endpoint: issuer keys, revoked tokens and used proofs. Also deletes expired rows. */
export function createTokens(engine: Engine) {
  return { ...issuerKeys(engine), ...usedUp(engine), ...tidying(engine) }
}

function issuerKeys({ build, read }: Engine) {
  return {
    /** Keys that sign or still verify at `now`, newest first. */
    issuerKeys: async (now: number): Promise<IssuerKey[]> => {
      const keys = build
        .selectFrom('issuer_keys')
        .selectAll()
        .where((e) => e.or([e('retires_at', 'is', null), e('retires_at', '>', now)]))
        .orderBy('created_at', 'desc')
        .orderBy('kid', 'desc')
      return (await read<IssuerKeyRow>(keys)).map(codecs.issuer_keys.decode)
    },
    /** Waits on PostgreSQL for another change of the keys, so that the steps after this one see its key. */
    holdIssuerKeys: (): Step =>
      run(
        build
          .updateTable('meta')
          .set((e) => ({ value: e.ref('value') }))
          .where('key', '=', 'issuer_key'),
        'any',
      ),
    /** Without `until` all keys are deleted; otherwise they verify until then at most, and their private keys are erased. */
    retireIssuerKeys: (until: number | undefined): Step =>
      until === undefined
        ? run(build.deleteFrom('issuer_keys'), 'any')
        : run(
            build
              .updateTable('issuer_keys')
              .set({ retires_at: until, private_key: null })
              .where((e) => e.or([e('retires_at', 'is', null), e('retires_at', '>', until)])),
            'any',
          ),
    insertIssuerKey: (key: IssuerKey): Step => insert('issuer_keys', codecs.issuer_keys.encode(key)),
  }
}

function usedUp({ build, read }: Engine) {
  return {
    /** Refused as not unique when the proof was used before. */
    useProof: (id: string, rememberUntil: number): Step =>
      insert('used_proofs', { id, expires_at: rememberUntil }),
    /**
     * Refused as not unique when the token is already revoked. Place it AFTER `agents.touch` of its agent: on PostgreSQL
     * that waits for the commits under way by the token, and makes those that wait for it look again.
     */
    revoke: (jti: string, rememberUntil: number): Step =>
      insert('revoked_tokens', { jti, expires_at: rememberUntil }),
    isRevoked: async (jti: string): Promise<boolean> =>
      (await read<{ jti: string }>(build.selectFrom('revoked_tokens').select('jti').where('jti', '=', jti)))
        .length > 0,
  }
}

/** Tables whose rows are deleted once the time in `end` has passed. */
const ENDING = [
  { table: 'idempotency', key: ['agent_id', 'key_hash'], end: 'expires_at' },
  { table: 'used_proofs', key: ['id'], end: 'expires_at' },
  { table: 'revoked_tokens', key: ['jti'], end: 'expires_at' },
  { table: 'logins', key: ['jti'], end: 'expires_at' },
  { table: 'issuer_keys', key: ['kid'], end: 'retires_at' },
  { table: 'login_links', key: ['secret_hash'], end: 'expires_at' },
  { table: 'challenges', key: ['challenge'], end: 'expires_at' },
  { table: 'command_logins', key: ['code_hash'], end: 'expires_at' },
] as const
/** Rows of one table in one commit: after a day of downtime there may be a million. */
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
    /** Deletes or erases one slice of everything that has expired. */
    tidy: (now: number): Step[] => [
      step(sql`UPDATE idempotency SET reply = NULL WHERE ${some(['agent_id', 'key_hash'], erasable(now))}`),
      ...ENDING.map((one) =>
        step(sql`DELETE FROM ${sql.table(one.table)} WHERE ${some(one.key, ended(one, now))}`),
      ),
    ],
    /** Whether `tidy` has anything left to do. */
    isUntidy: async (now: number): Promise<boolean> => {
      for (const which of [erasable(now), ...ENDING.map((one) => ended(one, now))]) {
        const first = sql<{ found: number }>`SELECT 1 AS found ${which} LIMIT 1`
        if ((await read<{ found: number }>({ compile: () => first.compile(build) })).length > 0) return true
      }
      return false
    },
  }
}
