import { setImmediate } from 'node:timers/promises'
import { CliError } from '../frame/failure.ts'
import { oneLine } from '../frame/output.ts'
import { Interrupted } from '../frame/surroundings.ts'
import type { Context } from '../frame/verb.ts'
import type { WantedCredential } from '../project-file/wanted.ts'
import { openAgentSession } from '../session/open.ts'
import { type Child, startChild } from './child.ts'
import { type Delivery, secretsOf, variablesFor, writeFiles } from './deliver.ts'
import { NOT_EXECUTABLE, NOT_FOUND } from './find-command.ts'
import type { GuardMessage } from './guard.ts'
import { createLedger, type Issuance, type Ledger } from './issued-credentials.ts'
import { openPrivateDirectory, type PrivateDirectory } from './private-directory.ts'
import type { Redaction } from './redact.ts'
import { keepAlive } from './renew.ts'
import { settleAll } from './settle.ts'
import { createSignalCourse, type SignalCourse } from './signal-course.ts'

export interface RunWish {
  readonly wanted: readonly WantedCredential[]
  /** As it was typed. */
  readonly command: string
  /** The file that is run. */
  readonly file: string
  readonly args: readonly string[]
  /** Of the child, before what it is given. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly redaction?: Redaction | undefined
  /** From SIGTERM, or the loss of the terminal, to SIGKILL. */
  readonly graceMs: number
  /** Whether a second process revokes when this one is killed. */
  readonly isGuarded: boolean
}

/**
 * Gets the credentials, runs the command with them, and revokes all that was got, however it ends. Returns the exit
 * code of the command. Throws what stood in the way of starting it.
 */
export async function supervise(context: Context, wish: RunWish): Promise<number> {
  const note = (text: string) => context.out.note(oneLine(text))
  const course = createSignalCourse(wish.graceMs, note)
  let ledger: Ledger | undefined
  let directory: PrivateDirectory | undefined
  let end: ChildEnd | undefined
  let code: number
  let guard: ((message: GuardMessage) => void) | undefined
  try {
    const { client } = await openAgentSession(context)
    if (wish.isGuarded) guard = (await import('./guard.ts')).startGuard(context)
    ledger = createLedger(client, context.now, {
      obtained: (id) => guard?.({ obtained: id }),
      revoked: (id) => guard?.({ revoked: id }),
    })
    course.onHangUp(ledger.hangUp)
    const issued = await obtainAll(wish, ledger, course)
    if (wish.wanted.some(({ files }) => files.length > 0)) {
      directory = await openPrivateDirectory(context)
      guard?.({ directory: directory.path })
    }
    end = await runChild(context, wish, { ledger, directory, course, issued, note })
  } finally {
    course.ending()
    await directory?.remove().catch(() => note(`mayfly: ${directory?.path} could not be removed.`))
    const { hardStop } = course
    const isSettled =
      ledger === undefined || (await settleAll(context, ledger, hardStop, end?.code, end?.drained))
    // What could not be revoked is left to it; we wait for it no longer.
    guard?.({ settled: isSettled })
    code = isSettled ? (end?.code ?? 1) : end?.code || 1
    course.close()
  }
  return code
}

/** All, or what the first failure says. What came nevertheless is in the ledger. */
async function obtainAll(wish: RunWish, ledger: Ledger, course: SignalCourse): Promise<Issuance[]> {
  course.throwIfInterrupted()
  const results = await Promise.allSettled(wish.wanted.map(({ request }) => ledger.obtain(request)))
  course.throwIfInterrupted()
  return results.map((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}

interface ChildEnd {
  readonly code: number
  readonly drained: Promise<unknown>
}

interface Held {
  readonly ledger: Ledger
  readonly directory: PrivateDirectory | undefined
  readonly course: SignalCourse
  readonly issued: readonly Issuance[]
  note(text: string): void
}

async function runChild(context: Context, wish: RunWish, held: Held): Promise<ChildEnd> {
  const { ledger, directory, course, issued, note } = held
  const place = async ({ wanted, set }: Pick<Delivery, 'wanted' | 'set'>, { credential }: Issuance) => {
    for (const secret of secretsOf(credential)) wish.redaction?.add(secret)
    return directory !== undefined && wanted.files.length > 0
      ? writeFiles(directory, { wanted, set }, credential)
      : {}
  }
  const env: Record<string, string | undefined> = { ...wish.env }
  const deliveries: Delivery[] = []
  for (const [index, issuance] of issued.entries()) {
    const wanted = wish.wanted[index]
    if (wanted === undefined) continue
    const delivery: Delivery = { wanted, set: String(index), issuance }
    Object.assign(env, variablesFor(wanted, issuance.credential), await place(delivery, issuance))
    deliveries.push(delivery)
  }
  // A signal that came with the last answer is heard first.
  await setImmediate()
  course.throwIfInterrupted()
  const child = await start(context, wish, env)
  course.running(child)
  const over = new AbortController()
  const kept = keepAlive(
    deliveries,
    {
      ledger,
      now: context.now,
      note,
      place: async (delivery, issuance) => {
        await place(delivery, issuance)
      },
    },
    over.signal,
  )
  const code = await child.ended
  over.abort(new Interrupted(0))
  course.ending()
  // What was being issued must be known before all is revoked.
  await ledger.settle(3_000)
  await kept
  return { code, drained: child.drained }
}

async function start(
  { cwd, stdout, stderr }: Context,
  { command, file, args, redaction }: RunWish,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Child> {
  try {
    return await startChild({ command, file, args, cwd, env, redaction, stdout, stderr })
  } catch (error) {
    throw new StartFailure(command, error)
  }
}

/** The system refused to run the command: an interpreter that is not there, too many arguments. */
export class StartFailure extends CliError {
  readonly shellCode: number

  constructor(command: string, cause: unknown) {
    const code = (cause as { code?: string }).code
    const why = WHY[code ?? ''] ?? `the system refused it (${code ?? 'unknown'})`
    super('not_started', `${command} could not be started: ${why}.`, {
      hint: 'Its credentials are revoked.',
    })
    this.shellCode = code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE
  }
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'the program that its first line names does not exist',
  EACCES: 'permission denied',
  E2BIG: 'its arguments and variables are too long',
  ENOEXEC: 'it is no program',
  EAGAIN: 'there are too many processes',
  ENOMEM: 'there is not enough memory',
}
