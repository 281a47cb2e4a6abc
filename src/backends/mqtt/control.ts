import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, denied } from '../../domain/backend-error.ts'
import { isObject, parseJson } from '../../domain/formats/json.ts'
import { connectionError } from '../../egress/network.ts'
import { notUnderstood } from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'
import { type Connection, openConnection } from './connection.ts'

/** Below the keep-alive of the session, which therefore needs no pings. */
const IDLE_MS = 30_000
const PAGE = 1_000

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
        const session = await unlessAborted(connection(), bounded)
        const message = JSON.stringify({
          commands: commands.map((command) => ({ ...command, correlationData: id })),
        })
        return answersOf(await unlessAborted(session.ask(id, message), bounded), commands)
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
  const reply = parseJson(text)
  const responses: unknown = isObject(reply) ? reply['responses'] : undefined
  const isComplete =
    Array.isArray(responses) &&
    commands.every(({ command }, index) => responses[index]?.command === command) &&
    responses.length === commands.length
  if (!isComplete) throw notUnderstood('The broker')
  return responses
}

export const NO_CLIENT = 'Client not found'

/** Throws where a command failed; what it should have deleted may be gone already. */
export function requireDone(answer: Answer | undefined): void {
  const { command = 'none', error } = answer ?? {}
  if (error !== undefined && !/^(Client|Group|Role) not found$/.test(error)) throw refused(command, error)
}

export function refused(command: string, detail: string): BackendError {
  return denied(`The broker refused the command ${command}.`, { detail })
}

/** The names of all clients or roles, in pages: the reply with all of them would be too long. */
export async function* namePages(
  control: Control,
  what: 'Clients' | 'Roles',
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  for (let offset = 0; ; offset += PAGE) {
    const command = { command: `list${what}`, verbose: false, count: PAGE, offset }
    const [answer] = await control.run([command], signal)
    requireDone(answer)
    const names = answer?.data?.[what.toLowerCase()]
    if (!Array.isArray(names)) throw notUnderstood('The broker')
    yield names.map(String)
    if (names.length < PAGE) return
  }
}
