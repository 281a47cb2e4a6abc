import type { CommandLogin } from '../../domain/people/session.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { CommandLoginRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

/** Logins of commands, from their begin until their code is worth nothing. `store.tokens.tidy` deletes them. */
export function createCommandLogins({ build, read }: Engine) {
  const all = () => build.selectFrom('command_logins').selectAll()
  const found = async (rows: Promise<CommandLoginRow[]>): Promise<CommandLogin | undefined> =>
    (await rows).map(codecs.command_logins.decode)[0]
  const living = (codeHash: string, state: CommandLogin['state'], now: number) =>
    build
      .updateTable('command_logins')
      .where('code_hash', '=', codeHash)
      .where('state', '=', state)
      .where('expires_at', '>', now)
  return {
    /** By the hash of its device code or authorization code, in whatever state. */
    findByCode: (codeHash: string) => found(read<CommandLoginRow>(all().where('code_hash', '=', codeHash))),
    /** By the hash of what a person types, in whatever state. */
    findByUserCode: (hash: string) => found(read<CommandLoginRow>(all().where('user_code_hash', '=', hash))),
    /** How many wait for a person. */
    countWaiting: async (now: number): Promise<number> => {
      const counted = build
        .selectFrom('command_logins')
        .select((e) => e.fn.countAll<number>().as('n'))
        .where('state', '=', 'waiting')
        .where('expires_at', '>', now)
      return Number((await read<{ n: number }>(counted))[0]?.n ?? 0)
    },
    /** Refused as not unique when another waits under the same code. */
    insert: (login: CommandLogin): Step => insert('command_logins', codecs.command_logins.encode(login)),
    /** Refused when somebody has decided already, or when it has expired. */
    decide: (
      { codeHash }: Pick<CommandLogin, 'codeHash'>,
      { state, operatorId, sessionId }: Pick<CommandLogin, 'state' | 'operatorId' | 'sessionId'>,
      now: number,
    ): Step =>
      run(living(codeHash, 'waiting', now).set({ state, operator_id: operatorId, session_id: sessionId }), 1),
    /** Refused when the command has asked at another place since, or somebody has decided. */
    recordPoll: (
      { codeHash, polledAt }: Pick<CommandLogin, 'codeHash' | 'polledAt'>,
      { now, pollMs }: { readonly now: number; readonly pollMs: number },
    ): Step =>
      run(
        living(codeHash, 'waiting', now)
          .where('polled_at', polledAt === null ? 'is' : '=', polledAt)
          .set({ polled_at: now, poll_ms: pollMs }),
        1,
      ),
    /** Refused when its token was handed out already, or when it has expired. `until`: how long a second use is known. */
    use: (
      { codeHash }: Pick<CommandLogin, 'codeHash'>,
      { sessionId, until }: { readonly sessionId: string; readonly until: number },
      now: number,
    ): Step =>
      run(
        living(codeHash, 'allowed', now).set({ state: 'used', session_id: sessionId, expires_at: until }),
        1,
      ),
  }
}
