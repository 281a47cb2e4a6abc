import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { askAdminSocket } from './admin-socket.ts'
import { COMPILE_CACHE } from './compile-cache.ts'
import { joinedMain } from './joined-main.ts'

const START_MS = 60_000
const ANSWER_MS = 45_000
const LOG_LINES = 2_000

export interface ServerGiven {
  readonly dataDir: string
  /** PostgreSQL as the store. */
  readonly databaseUrl?: string
  readonly flags?: readonly string[]
  /** Modules that are loaded before the server. */
  readonly preload?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A program, with its arguments, that starts the server: as another user, or in namespaces. */
  readonly by?: readonly string[]
}

export interface Reply<T> {
  readonly status: number
  readonly body: T
  readonly headers: Headers
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The server as operators run it: a process of its own, spoken to over HTTP. */
export interface ServerProcess {
  readonly address: string
  /** `token` undefined: as the administrator. Throws `NoAnswer` when none came. */
  call<T = Record<string, unknown>>(
    token: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Reply<T>>
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<Ended>
  signal(name: NodeJS.Signals): void
  /** SIGTERM; resolves when the process is gone. */
  terminate(): Promise<Ended>
  readonly ended: Promise<Ended>
  hasEnded(): boolean
  /** The newest lines of its log. */
  logged(): string
}

/** The connection ended before a reply came: whether it was done is unknown. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

const alive = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

function spawnServer(given: ServerGiven): ChildProcess {
  const preload = (given.preload ?? []).flatMap((module) => ['--import', module])
  const argv = ['server', '--data-dir', given.dataDir, '--listen', '127.0.0.1:0', ...(given.flags ?? [])]
  const [program, ...args] = [...(given.by ?? []), process.execPath, ...preload, joinedMain(), ...argv]
  const child = spawn(program ?? '', args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      // As a service: it leaves nothing in the home directory.
      INVOCATION_ID: 'test',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...(given.databaseUrl === undefined ? {} : { MAYFLY_DATABASE_URL: given.databaseUrl }),
      ...given.env,
    },
  })
  alive.add(child)
  child.once('exit', () => alive.delete(child))
  return child
}

/** SIGKILL in the midst of starting, or of whatever it does by then. */
export async function killDuringStart(given: ServerGiven, afterMs: number): Promise<void> {
  const child = spawnServer(given)
  child.stdout?.resume()
  child.stderr?.resume()
  const ended = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), afterMs)
  const [code] = await ended
  clearTimeout(timer)
  if (code !== null) throw new Error(`the server ended by itself with ${code}`)
}

/** A server that may take its time to start, or may end before it has. */
export interface StartingServer extends Pick<ServerProcess, 'kill' | 'terminate' | 'ended' | 'logged'> {
  /** As `startServerProcess`. */
  readonly listening: Promise<ServerProcess>
  /** Resolves once its log has the text; throws when the server ends without it. */
  said(text: string): Promise<unknown>
}

export function startingServer(given: ServerGiven): StartingServer {
  const child = spawnServer(given)
  const lines: string[] = []
  const ended = once(child, 'exit').then(([code, signal]): Ended => ({ code, signal }))
  const listening = whenListening(given, child, lines, ended)
  // A test may wait for its end instead.
  listening.catch(() => undefined)
  const logged = () => lines.join('\n')
  const end = (signal: NodeJS.Signals) => () => {
    child.kill(signal)
    return ended
  }
  return {
    listening,
    ended,
    logged,
    kill: end('SIGKILL'),
    terminate: end('SIGTERM'),
    said: (text) =>
      poll(logged, () => {
        if (logged().includes(text)) return true
        if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}:\n${logged()}`)
        return false
      }),
  }
}

/** On a free port. Resolves when it listens; throws with its log when it does not. */
export function startServerProcess(given: ServerGiven): Promise<ServerProcess> {
  return startingServer(given).listening
}

async function whenListening(
  given: ServerGiven,
  child: ChildProcess,
  lines: string[],
  ended: Promise<Ended>,
): Promise<ServerProcess> {
  const address = await untilListening(child, lines, ended)
  const end = (signal: NodeJS.Signals) => () => {
    child.kill(signal)
    return ended
  }
  return {
    address,
    call: (token, method, path, body, headers = {}) =>
      request({ address, dataDir: given.dataDir }, method, path, token, body, headers),
    kill: end('SIGKILL'),
    signal: (name) => void child.kill(name),
    terminate: end('SIGTERM'),
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    logged: () => lines.join('\n'),
  }
}

async function untilListening(child: ChildProcess, lines: string[], ended: Promise<Ended>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const keep = (line: string) => {
    lines.push(line)
    if (lines.length > LOG_LINES) lines.shift()
  }
  if (child.stdout === null || child.stderr === null) throw new Error('no output')
  createInterface({ input: child.stderr }).on('line', keep)
  createInterface({ input: child.stdout }).on('line', (line) => {
    keep(line)
    if (line.includes('"msg":"listening"')) resolve(JSON.parse(line).address)
  })
  const fail = (why: string) => reject(new Error(`${why}:\n${lines.join('\n')}`))
  void ended.then(({ code, signal }) => fail(`the server ended with ${code ?? signal}`))
  const timer = setTimeout(() => fail('the server did not listen in time'), START_MS)
  try {
    return await promise
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  } finally {
    clearTimeout(timer)
  }
}

async function request<T>(
  { address, dataDir }: { address: string; dataDir: string },
  method: string,
  path: string,
  token: string | undefined,
  body: unknown,
  more: Record<string, string>,
): Promise<Reply<T>> {
  const headers = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...more,
  }
  const text = body === undefined ? undefined : JSON.stringify(body)
  const signal = AbortSignal.timeout(ANSWER_MS)
  try {
    const reply =
      token === undefined
        ? await askAdminSocket(dataDir, { method, path, headers, body: text, signal })
        : await fetched(address + path, {
            method,
            headers,
            signal,
            ...(text === undefined ? {} : { body: text }),
          })
    const isJson = reply.headers.get('content-type')?.includes('json') === true
    return {
      status: reply.status,
      body: (isJson ? JSON.parse(reply.text) : reply.text) as T,
      headers: reply.headers,
    }
  } catch (cause) {
    throw new NoAnswer(`${method} ${address}${path}`, { cause })
  }
}

async function fetched(url: string, init: RequestInit) {
  const response = await fetch(url, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Asks again and again until the answer is other than undefined or false; throws with `what` after a long while. */
export async function poll<T>(
  what: string | (() => string),
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { withinMs = 120_000, everyMs = 50 } = {},
): Promise<T> {
  const until = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer as T
    if (Date.now() > until) throw new Error(`not in time: ${typeof what === 'string' ? what : what()}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
