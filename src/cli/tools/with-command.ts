import { setImmediate } from 'node:timers/promises'
import type { IssueRequest } from '../../client/wire.ts'
import { failureOf } from '../frame/failure.ts'
import { oneLine } from '../frame/output.ts'
import type { Context } from '../frame/verb.ts'
import { startChild } from '../run/child.ts'
import { findCommand, NOT_FOUND } from '../run/find-command.ts'
import { createLedger, type Ledger } from '../run/issued-credentials.ts'
import { openPrivateDirectory, type PrivateDirectory } from '../run/private-directory.ts'
import { settleAll } from '../run/settle.ts'
import { createSignalCourse } from '../run/signal-course.ts'
import { StartFailure } from '../run/supervise.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession, type Session } from '../session/open.ts'
import { endOf, isFresh } from './held.ts'

/** From SIGTERM to SIGKILL, as `mayfly run` has it. */
const GRACE_MS = 8_000
const HANG_UP_MS = 3_000

export interface CommandWish {
  readonly request: IssueRequest
  readonly renewBeforeMs: number
  readonly command: string
  readonly args: readonly string[]
}

/** What a command's credentials are served from, while it runs. */
export interface Supply {
  readonly session: Session
  /** Of 0700, gone when the command has ended. */
  readonly directory: string
  /** One that lives long enough; the old one while there is no other to be had. Throws as `client.issue`. */
  current(): Promise<HeldCredential>
}

export interface Prepared {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Called when the command has ended, before all is revoked. */
  close(): Promise<void>
}

/**
 * Runs a command with what `prepare` makes of the supply, and revokes all that was issued, however it ends. Returns
 * its exit code. Throws what stood in the way of starting it.
 */
export async function withCommand(
  context: Context,
  wish: CommandWish,
  prepare: (supply: Supply) => Promise<Prepared>,
): Promise<number> {
  const file = await findCommand(wish.command, { path: context.env['PATH'], cwd: context.cwd })
  if (typeof file === 'number') {
    const why = file === NOT_FOUND ? 'there is no such command' : 'it cannot be executed'
    context.out.note(oneLine(`mayfly: ${wish.command}: ${why}. Nothing was issued.`))
    return file
  }
  try {
    return await supervise(context, { ...wish, file }, prepare)
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error
    context.out.note(oneLine(`mayfly: ${error.message} ${error.hint ?? ''}`))
    return error.shellCode
  }
}

async function supervise(
  context: Context,
  wish: CommandWish & { readonly file: string },
  prepare: (supply: Supply) => Promise<Prepared>,
): Promise<number> {
  const note = (text: string) => context.out.note(oneLine(text))
  const course = createSignalCourse(GRACE_MS, note)
  let ledger: Ledger | undefined
  let directory: PrivateDirectory | undefined
  let prepared: Prepared | undefined
  let code: number | undefined
  try {
    const session = await openAgentSession(context)
    ledger = createLedger(session.client, context.now)
    course.onHangUp(ledger.hangUp)
    directory = await openPrivateDirectory(context)
    prepared = await prepare({ session, directory: directory.path, current: supplyOf(context, ledger, wish) })
    // A signal that came with the last answer is heard first.
    await setImmediate()
    course.throwIfInterrupted()
    const { command, file, args } = wish
    const child = await startChild({ ...context, command, file, args, env: prepared.env }).catch((error) => {
      throw new StartFailure(command, error)
    })
    course.running(child)
    code = await child.ended
  } catch (error) {
    // What failed may have failed because we hung up.
    course.throwIfInterrupted()
    throw error
  } finally {
    course.ending()
    // A renewal that is under way is given up after a while, or it would hold up the end.
    await Promise.all([ledger?.settle(HANG_UP_MS), prepared?.close()]).catch((error: unknown) =>
      note(`mayfly: ${failureOf(error).message}`),
    )
    await directory?.remove().catch(() => note(`mayfly: ${directory?.path} could not be removed.`))
    const isSettled = ledger === undefined || (await settleAll(context, ledger, course.hardStop, code))
    if (!isSettled && code === 0) code = 1
    course.close()
  }
  return code
}

function supplyOf(context: Context, ledger: Ledger, wish: CommandWish): Supply['current'] {
  let last: HeldCredential | undefined
  let pending: Promise<HeldCredential> | undefined
  const obtain = async () => {
    last = (await ledger.obtain(wish.request)).credential
    return last
  }
  return async () => {
    if (last !== undefined && isFresh(last, context.now(), wish.renewBeforeMs)) return last
    pending ??= obtain().finally(() => {
      pending = undefined
    })
    try {
      return await pending
    } catch (error) {
      if (last !== undefined && endOf(last) > context.now()) return last
      throw error
    }
  }
}
