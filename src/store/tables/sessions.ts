import type { ExpressionBuilder } from 'kysely'
import {
  type Challenge,
  COMMAND_METHODS,
  type LoginLink,
  type Session,
  type SsoAnswer,
} from '../../domain/people/session.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { ChallengeRow, LoginLinkRow, SessionRow, Tables } from '../schema/rows.ts'
import { among } from './among.ts'
import { codecs } from './codecs.ts'

/**
 * Sessions of operators, the links that start them, and the challenges that they were given. A session that has ended has
 * no row. They are read from the database with every request, so that what one node ends, every node refuses.
 */
export function createSessions(engine: Engine) {
  return { ...sessionReads(engine), ...sessionSteps(engine), ...links(engine), ...challenges(engine) }
}

function sessionReads(engine: Engine) {
  const { build, read } = engine
  const bySecret = engine.prepare<SessionRow>('SELECT * FROM sessions WHERE secret_hash = ?')
  const all = () => build.selectFrom('sessions').selectAll()
  const decoded = async (rows: Promise<SessionRow[]>): Promise<Session[]> =>
    (await rows).map(codecs.sessions.decode)
  return {
    findBySecret: async (secretHash: string): Promise<Session | undefined> =>
      (await decoded(bySecret([secretHash])))[0],
    find: async (id: string): Promise<Session | undefined> =>
      (await decoded(read<SessionRow>(all().where('id', '=', id))))[0],
    /** Those of these ids that have not ended. */
    among: (ids: readonly string[]): Promise<Session[]> =>
      decoded(read<SessionRow>(all().where(among(engine, ids)))),
    /** Oldest first. */
    of: (operatorId: string): Promise<Session[]> =>
      decoded(read<SessionRow>(all().where('operator_id', '=', operatorId).orderBy('id'))),
    startedBy: (passkeyId: string, operatorId: string): Promise<Session[]> =>
      decoded(
        read<SessionRow>(
          all().where('operator_id', '=', operatorId).where('passkey_id', '=', passkeyId).orderBy('id'),
        ),
      ),
    /** Oldest first, those after `cursor`. */
    list: (operatorId: string | undefined, cursor: string | undefined, limit: number): Promise<Session[]> => {
      let query = all()
      if (operatorId !== undefined) query = query.where('operator_id', '=', operatorId)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      return decoded(read<SessionRow>(query.orderBy('id').limit(limit)))
    },
    /** Those that have expired, or were last used at `idleSince` or before (`sessionEnd`). */
    expired: (now: number, idleSince: number, limit: number): Promise<Session[]> =>
      decoded(read<SessionRow>(all().where(isOver(now, idleSince)).limit(limit))),
  }
}

/** That a session is over; that of a command does not end by idleness. */
const isOver = (now: number, idleSince: number) => (e: ExpressionBuilder<Tables, 'sessions'>) =>
  e.or([
    e('expires_at', '<=', now),
    e.and([e('last_used_at', '<=', idleSince), e('method', 'not in', COMMAND_METHODS)]),
  ])

function sessionSteps({ build }: Engine) {
  return {
    insert: (session: Session): Step => ({
      op: 'insert',
      table: 'sessions',
      row: codecs.sessions.encode(session),
    }),
    /** Holds only while the session lives and its operator is unchanged, and keeps it so until the commit. */
    requireUnchanged: ({ id, version }: Pick<Session, 'id' | 'version'>): Step =>
      run(
        build.updateTable('sessions').set({ version }).where('id', '=', id).where('version', '=', version),
        1,
      ),
    recordUse: (id: string, at: number): Step =>
      run(
        build
          .updateTable('sessions')
          .set({ last_used_at: at })
          .where('id', '=', id)
          .where('last_used_at', '<', at),
        'any',
      ),
    /** Refused when it may not register any more. */
    useRegistration: (id: string, now: number): Step =>
      run(
        build
          .updateTable('sessions')
          .set({ may_register_until: null })
          .where('id', '=', id)
          .where('may_register_until', '>', now),
        1,
      ),
    /** Refused when it has ended already. */
    end: (id: string): Step => run(build.deleteFrom('sessions').where('id', '=', id), 1),
    /** Ends the commands that it allowed. Place it after `end`; refused when there are not so many (any more). */
    endAllowedBy: (id: string, count: number): Step =>
      run(build.deleteFrom('sessions').where('allowed_by', '=', id), count),
    /** As `end`, unless it was used after `idleSince`. */
    expire: (id: string, now: number, idleSince: number): Step =>
      run(build.deleteFrom('sessions').where('id', '=', id).where(isOver(now, idleSince)), 1),
  }
}

function links({ build, read }: Engine) {
  return {
    findLink: async (secretHash: string): Promise<LoginLink | undefined> =>
      (
        await read<LoginLinkRow>(
          build.selectFrom('login_links').selectAll().where('secret_hash', '=', secretHash),
        )
      ).map(codecs.login_links.decode)[0],
    addLink: (link: LoginLink): Step => ({
      op: 'insert',
      table: 'login_links',
      row: codecs.login_links.encode(link),
    }),
    /** Refused when it was used already. */
    useLink: (secretHash: string): Step =>
      run(build.deleteFrom('login_links').where('secret_hash', '=', secretHash), 1),
    /** The invitations of an operator before a new one. */
    dropInvitations: (operatorId: string): Step =>
      run(
        build
          .deleteFrom('login_links')
          .where('operator_id', '=', operatorId)
          .where('kind', '=', 'invitation'),
        'any',
      ),
  }
}

function challenges({ build, read }: Engine) {
  return {
    findChallenge: async (challenge: string): Promise<Challenge | undefined> =>
      (
        await read<ChallengeRow>(
          build.selectFrom('challenges').selectAll().where('challenge', '=', challenge),
        )
      ).map(codecs.challenges.decode)[0],
    addChallenge: (challenge: Challenge): Step => ({
      op: 'insert',
      table: 'challenges',
      row: codecs.challenges.encode(challenge),
    }),
    /** Refused when it has an answer, was used up, or is too old. */
    answerChallenge: (challenge: string, answer: SsoAnswer, now: number): Step =>
      run(
        build
          .updateTable('challenges')
          .set({ answer: JSON.stringify(answer) })
          .where('challenge', '=', challenge)
          .where('purpose', '=', 'confirm')
          .where('answer', 'is', null)
          .where('expires_at', '>', now),
        1,
      ),
    /** Refused when it was answered already. */
    useChallenge: (challenge: string): Step =>
      run(build.deleteFrom('challenges').where('challenge', '=', challenge), 1),
  }
}
