import type { Context } from '../frame/verb.ts'
import { ownCommand, quote } from '../git/own-command.ts'
import { wayFlags, wayTo } from '../git/wrapper.ts'
import type { Target } from '../session/session.ts'

/** The command line with which another program calls this verb, for the same server and login. */
export function callOf(context: Context, target: Target, words: readonly string[]): string[] {
  return [...ownCommand(context), ...words, ...wayFlags(wayTo(context, target))]
}

/** For `sh`. */
export function callLine(context: Context, target: Target, words: readonly string[]): string {
  return callOf(context, target, words).map(quote).join(' ')
}
