import type { Operator } from '../../domain/people/operator.ts'
import type { Passkey } from '../../domain/people/session.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { OperatorRow, PasskeyRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

/** Operators and their passkeys. */
export function createOperators(engine: Engine) {
  return { ...operatorReads(engine), ...operatorSteps(engine), ...passkeys(engine) }
}

function operatorReads({ build, read }: Engine) {
  const living = () => build.selectFrom('operators').selectAll().where('ended_at', 'is', null)
  const decoded = async (rows: Promise<OperatorRow[]>): Promise<Operator[]> =>
    (await rows).map(codecs.operators.decode)
  return {
    findLiving: async (id: string): Promise<Operator | undefined> =>
      (await decoded(read<OperatorRow>(living().where('id', '=', id))))[0],
    /** One who was invited here: a provider of single sign-on may say the same address of somebody else. */
    findByEmail: async (email: string): Promise<Operator | undefined> =>
      (await decoded(read<OperatorRow>(living().where('email', '=', email).where('issuer', 'is', null))))[0],
    /** Of single sign-on. */
    findBySubject: async (issuer: string, subject: string): Promise<Operator | undefined> =>
      (
        await decoded(read<OperatorRow>(living().where('issuer', '=', issuer).where('subject', '=', subject)))
      )[0],
    /** Oldest first, those after `cursor`. */
    list: (cursor: string | undefined, limit: number): Promise<Operator[]> => {
      const all = cursor === undefined ? living() : living().where('id', '>', cursor)
      return decoded(read<OperatorRow>(all.orderBy('id').limit(limit)))
    },
    /** All who have logged in, so that a rule about the last of a kind can be decided. */
    joined: (): Promise<Operator[]> =>
      decoded(read<OperatorRow>(living().where('joined_at', 'is not', null).orderBy('id'))),
  }
}

function operatorSteps({ build }: Engine) {
  const living = (operator: Pick<Operator, 'id' | 'version'>) =>
    build
      .updateTable('operators')
      .where('id', '=', operator.id)
      .where('version', '=', operator.version)
      .where('ended_at', 'is', null)
  /** Their requests under way are decided again. */
  const touchSessions = (id: string): Step =>
    run(
      build
        .updateTable('sessions')
        .set((e) => ({ version: e('version', '+', 1) }))
        .where('operator_id', '=', id),
      'any',
    )
  return {
    /** Refused as not unique when the address is taken. */
    insert: (operator: Operator): Step => ({
      op: 'insert',
      table: 'operators',
      row: codecs.operators.encode(operator),
    }),
    /** Refused when the operator has changed or ended. */
    change: (
      operator: Operator,
      { name, scopes, backendScopes }: Pick<Operator, 'name' | 'scopes' | 'backendScopes'>,
    ): Step[] => [
      run(
        living(operator).set({
          name,
          scopes: JSON.stringify(scopes),
          backend_scopes: JSON.stringify(backendScopes),
          version: operator.version + 1,
        }),
        1,
      ),
      touchSessions(operator.id),
    ],
    /**
     * Refused when the operator has changed or ended, or when somebody logged in since. What a provider of single sign-on says
     * of them is in `operator` already.
     */
    logIn: (operator: Operator, now: number): Step =>
      run(
        living(operator)
          .where('logins', '=', operator.logins)
          .set({
            logins: operator.logins + 1,
            joined_at: operator.joinedAt ?? now,
            last_login_at: now,
            ...(operator.issuer === null ? {} : said(operator)),
          }),
        1,
      ),
    /** Holds only while the operator lives and is unchanged, and keeps them so until the commit. */
    requireUnchanged: (operator: Pick<Operator, 'id' | 'version'>): Step =>
      run(living(operator).set({ version: operator.version }), 1),
    /** Refused when the operator has changed or ended. Passkeys, sessions and links go with them. */
    end: (operator: Pick<Operator, 'id' | 'version'>, now: number): Step[] => [
      run(living(operator).set({ ended_at: now, version: operator.version + 1 }), 1),
      run(build.deleteFrom('passkeys').where('operator_id', '=', operator.id), 'any'),
      run(build.deleteFrom('sessions').where('operator_id', '=', operator.id), 'any'),
      run(build.deleteFrom('login_links').where('operator_id', '=', operator.id), 'any'),
    ],
  }
}

/** The columns that each login by single sign-on writes again. */
const said = ({ email, name, provider, scopes, backendScopes }: Operator) => ({
  email,
  name,
  provider,
  scopes: JSON.stringify(scopes),
  backend_scopes: JSON.stringify(backendScopes),
})

function passkeys({ build, read }: Engine) {
  const all = () => build.selectFrom('passkeys').selectAll()
  const decoded = async (rows: Promise<PasskeyRow[]>): Promise<Passkey[]> =>
    (await rows).map(codecs.passkeys.decode)
  return {
    /** Oldest first. */
    passkeysOf: (operatorId: string): Promise<Passkey[]> =>
      decoded(read<PasskeyRow>(all().where('operator_id', '=', operatorId).orderBy('id'))),
    findPasskey: async (credentialId: string): Promise<Passkey | undefined> =>
      (await decoded(read<PasskeyRow>(all().where('credential_id', '=', credentialId))))[0],
    /** How many passkeys belong to another relying party than this, and so do not work. */
    countPasskeysBeside: async (rpId: string): Promise<number> =>
      Number(
        (
          await read<{ n: number }>(
            build
              .selectFrom('passkeys')
              .select((e) => e.fn.countAll<number>().as('n'))
              .where('rp_id', '!=', rpId),
          )
        )[0]?.n ?? 0,
      ),
    /** Refused as not unique when it is registered already. */
    addPasskey: (passkey: Passkey): Step => ({
      op: 'insert',
      table: 'passkeys',
      row: codecs.passkeys.encode(passkey),
    }),
    /** Refused when it was removed, or when another answer has used this counter or a later one. */
    usePasskey: (
      { id, counter }: Pick<Passkey, 'id' | 'counter'>,
      used: Pick<Passkey, 'counter' | 'backup'> & { readonly at: number },
    ): Step =>
      run(
        build
          .updateTable('passkeys')
          .set({ counter: used.counter, backup: used.backup, last_used_at: used.at })
          .where('id', '=', id)
          .where('counter', '=', counter),
        1,
      ),
    /**
     * Refused when it is gone. The sessions that it started end, then the commands that these allowed: a login of a command
     * holds the session that allows it until it is there.
     */
    removePasskey: (id: string): Step[] => [
      run(build.deleteFrom('passkeys').where('id', '=', id), 1),
      run(build.deleteFrom('sessions').where('passkey_id', '=', id).where('allowed_by', 'is', null), 'any'),
      run(build.deleteFrom('sessions').where('passkey_id', '=', id), 'any'),
    ],
  }
}
