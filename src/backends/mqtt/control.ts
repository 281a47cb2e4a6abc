import { BackendError, type Host } from '../kind.ts'
import { connectionError, untilAborted } from '../network.ts'
import type { Config } from './config.ts'
import { type Connection, openConnection } from './connection.ts'

/** Below the keep-alive of the session, which therefore needs no pings. */
const IDLE_MS = 30_000

export interface Command {
  readonly command: string
  readonly [name: string]: unknown
}

export interface Answer {
  readonly command: string
  /** In the plugin's words; absent on success. */
  readonly error?: string
  readonly data?: Readonly<Record<string, unknown>>
}

export interface Control extends AsyncDisposable {
  /** Carries the commands out in their order; one answer for each. Throws `BackendError`. */
  run(commands: readonly Command[], signal: AbortSignal): Promise<readonly Answer[]>
}

/** The commands of the dynamic security plugin, over one session that opens when it is needed. */
export function createControl(settings: Config, host: Host): Control {
  let current: { readonly opening: Promise<Connection>; open?: Connection } | undefined
  let last = 0
  let underWay = 0
  let timer: NodeJS.Timeout | undefined

  function connection(): Promise<Connection> {
    if (current !== undefined && current.open?.isOpen !== false) return current.opening
    const fresh: typeof current = {
      opening: openConnection(settings, host, AbortSignal.timeout(host.timeoutMs)),
    }
    current = fresh
    fresh.opening.then(
      (open) => {
        fresh.open = open
      },
      () => {
        if (current === fresh) current = undefined
      },
    )
    return fresh.opening
  }

  const close = async () => {
    const closing = current?.opening
    current = undefined
    clearTimeout(timer)
    const open = await closing?.catch(() => undefined)
    open?.close()
  }

  return {
    async run(commands, signal) {
      const id = String(++last)
      underWay += 1
      clearTimeout(timer)
      const deadline = AbortSignal.timeout(host.timeoutMs)
      const bounded = AbortSignal.any([signal, deadline])
      try {
        bounded.throwIfAborted()
        const session = await untilAborted(connection(), bounded)
        const message = JSON.stringify({
          commands: commands.map((command) => ({ ...command, correlationData: id })),
        })
        return answersOf(await untilAborted(session.ask(id, message), bounded), commands)
      } catch (error) {
        // The connection may be one that only we still believe in.
        if (deadline.aborted) await close()
        throw error instanceof BackendError ? error : connectionError(error, 'The broker', bounded)
      } finally {
        underWay -= 1
        if (underWay === 0) timer = setTimeout(close, IDLE_MS).unref()
      }
    },
    [Symbol.asyncDispose]: close,
  }
}

/** Throws `unavailable` unless there is one answer for each command. */
function answersOf(text: string, commands: readonly Command[]): readonly Answer[] {
  let responses: readonly Answer[] | undefined
  try {
    responses = JSON.parse(text).responses
  } catch {
    responses = undefined
  }
  const isComplete =
    Array.isArray(responses) &&
    commands.every(({ command }, index) => responses[index]?.command === command) &&
    responses.length === commands.length
  if (!isComplete || responses === undefined) {
    throw new BackendError('unavailable', 'The broker sent a reply that Mayfly does not understand.')
  }
  return responses
}
