import { shellWord } from '../../domain/shell-word.ts'
import type { Context } from '../frame/verb.ts'
import { ownCommand } from '../git/own-command.ts'
import { wayFlags, wayTo } from '../git/wrapper.ts'
import type { Session } from '../session/open.ts'

/** The command line with which another program calls this verb, for the same server and login. */
export function callOf(context: Context, session: Session, words: readonly string[]): string[] {
  return [...ownCommand(context), ...words, ...wayFlags(wayTo(context, session))]
}

/** For `sh`. */
export const shellLine = (words: readonly string[]) => words.map(shellWord).join(' ')
