import { spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import type { Context } from '../frame/verb.ts'
import { ownCommand, wayFlags } from '../git/wrapper.ts'
import type { IssueEvent } from './issued-credentials.ts'

/**
 * Messages from a run to its guard, one JSON object per line. `settled` comes last and says whether everything was
 * revoked. If the pipe closes without it, the run was killed.
 */
export type GuardMessage = IssueEvent | { readonly directory: string } | { readonly settled: boolean }

/**
 * Starts the guard outside our process tree and process group, so it survives a kill of the whole tree. Returns the
 * function that sends it a message; once that resolves, the message reaches the guard even if we are killed.
 */
export function startGuard(context: Context): (message: GuardMessage) => Promise<void> {
  // The shell exits at once; descriptor 3 is the pipe.
  const script = '"$@" </dev/null >/dev/null 2>&1 &'
  const { server, profile, ca, keychain = true } = context.globals
  // The same server and login.
  const words = [...ownCommand(context), 'run-guard', ...wayFlags({ server, profile, caFile: ca, keychain })]
  const shell = spawn('/bin/sh', ['-c', script, 'sh', ...words], {
    cwd: context.cwd,
    // The GitHub Actions runner kills processes that carry this variable.
    env: { ...context.env, RUNNER_TRACKING_ID: '' },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const pipe = shell.stdio[3] as Writable
  for (const source of [shell, pipe]) source.on('error', () => {})
  shell.unref()
  return async (message) => {
    // Settles in any case: a guard that has gone must not keep the run from working.
    await new Promise((done) => pipe.write(`${JSON.stringify(message)}\n`, done))
    if ('settled' in message) pipe.end()
  }
}
