import type { Answer } from '../../../../src/client/routes.ts'

export type Session = Answer<'GET /v1/admin/sessions'>[number]

export const isCommand = ({ method }: Pick<Session, 'method'>): boolean =>
  method === 'browser' || method === 'device'

export interface Branch {
  readonly session: Session
  /** The commands that it has allowed. */
  readonly commands: readonly Session[]
}

/** Each session with the commands that it has allowed; last the commands whose session is over. */
export function treeOf(sessions: readonly Session[]): readonly Branch[] {
  const commands = sessions.filter(isCommand)
  const others = sessions.filter((one) => !isCommand(one))
  const ids = new Set(others.map(({ id }) => id))
  return [
    ...others.map((session) => ({
      session,
      commands: commands.filter(({ allowed_by }) => allowed_by === session.id),
    })),
    ...commands
      .filter(({ allowed_by }) => allowed_by === null || !ids.has(allowed_by))
      .map((session) => ({ session, commands: [] })),
  ]
}
