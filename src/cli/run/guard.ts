import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import type { Context, Globals } from '../frame/verb.ts'
import { ownCommand } from '../git/own-command.ts'

/**
 * What a run tells the process that guards it; a line each. `settled` is the last: whether all is revoked. The end of
 * the pipe without it is the death of the run.
 */
export type GuardMessage =
  | { readonly obtained: string }
  | { readonly revoked: string }
  | { readonly directory: string }
  | { readonly settled: boolean }

/** Starts it. It is nobody's child and in no group of ours, so that it outlives a kill of the whole tree. */
export function startGuard(context: Context): (message: GuardMessage) => void {
  // The shell leaves at once; descriptor 3 is the pipe.
  const script = '"$@" </dev/null >/dev/null 2>&1 &'
  const words = [...ownCommand(context), 'run-guard', ...flagsOf(context.globals)]
  const shell = spawn('/bin/sh', ['-c', script, 'sh', ...words], {
    cwd: context.cwd,
    // By this the runner of GitHub Actions finds what to kill.
    env: { ...context.env, RUNNER_TRACKING_ID: '' },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const pipe = shell.stdio[3] as Writable
  for (const source of [shell, pipe]) source.on('error', () => {})
  shell.unref()
  return (message) => {
    pipe.write(`${JSON.stringify(message)}\n`)
    if ('settled' in message) pipe.end()
  }
}

/** It logs in as we do. */
function flagsOf({ server, profile, ca, keychain }: Globals): string[] {
  return [
    ...(server === undefined ? [] : ['--server', server]),
    ...(profile === undefined ? [] : ['--profile', profile]),
    ...(ca === undefined ? [] : ['--ca', ca]),
    ...(keychain === false ? ['--no-keychain'] : []),
  ]
}
