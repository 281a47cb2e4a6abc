import { sql } from 'kysely'
import { REVOKE_FAILED_PREFIX, REVOKED_PREFIX, type Revocations } from '../../domain/backend.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import { createMeta } from './meta.ts'

type Failure = NonNullable<Revocations['lastFailure']>

/** When each upstream last ended a credential, and when it last failed to, in `meta`. */
export function lastRevocations(engine: Engine) {
  const { build } = engine
  const meta = createMeta(engine)
  /** Nothing for a backend whose last credential is settled: its configuration and these values are erased by then. */
  const set = (uid: string, prefix: string, value: string): Step =>
    run(
      build
        .insertInto('meta')
        .columns(['key', 'value'])
        .expression(
          build
            .selectFrom('backends')
            .select([
              sql<string>`cast(${prefix + uid} as text)`.as('key'),
              sql<string>`cast(${value} as text)`.as('value'),
            ])
            .where('uid', '=', uid)
            .where('config', 'is not', null),
        )
        .onConflict((c) => c.column('key').doUpdateSet({ value })),
      'any',
    )
  return {
    /** By backend. */
    lastRevocations: async (): Promise<Map<string, Revocations>> => {
      const all = new Map<string, Revocations>()
      for (const { key, value } of await meta.list(REVOKED_PREFIX))
        all.set(key.slice(REVOKED_PREFIX.length), { lastSuccess: Number(value) })
      for (const { key, value } of await meta.list(REVOKE_FAILED_PREFIX)) {
        const uid = key.slice(REVOKE_FAILED_PREFIX.length)
        all.set(uid, { ...all.get(uid), lastFailure: JSON.parse(value) as Failure })
      }
      return all
    },
    recordRevocations: (uid: string, { lastSuccess, lastFailure }: Revocations): Step[] => [
      ...(lastSuccess === undefined ? [] : [set(uid, REVOKED_PREFIX, String(lastSuccess))]),
      ...(lastFailure === undefined ? [] : [set(uid, REVOKE_FAILED_PREFIX, JSON.stringify(lastFailure))]),
    ],
  }
}
