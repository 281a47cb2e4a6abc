import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, type Transport } from '@connectrpc/connect'
import type { Host } from '../../backends/kind.ts'
import { BackendError, unavailable } from '../../domain/backend-error.ts'
import { GRPCController } from '../proto/go_plugin_pb.ts'
import type { Hide } from '../text.ts'
import { newCertificate, type OwnCertificate } from './certificate.ts'
import { connectTo } from './connection.ts'
import { firstLine, type Handshake, HandshakeFault, readHandshake } from './handshake.ts'
import { commandOf, type Isolation, type PluginCommand } from './isolation.ts'
import { drain, logLines } from './output.ts'
import { newPlace } from './place.ts'
import type { Program } from './program.ts'

export interface ProcessParts {
  /** The name of the plugin, for messages and the log. */
  readonly name: string
  readonly program: Program
  /** By which a plugin knows that a host of its own started it, and no person. */
  readonly cookie: { readonly key: string; readonly value: string }
  readonly isolation: Isolation
  readonly log: Host['log']
  readonly hide: Hide
  /** Gives up a process that is not ready yet. */
  readonly signal?: AbortSignal | undefined
}

export interface PluginProcess {
  readonly transport: Transport
  /** Resolves when the process has ended, with how: "exit code 1" or "signal SIGKILL". */
  readonly exited: Promise<string>
  isRunning(): boolean
  /** Ends the process, and all that it started, within five seconds. */
  stop(): Promise<void>
  /** The same, at once. */
  kill(): Promise<void>
}

/** A Node that starts on a busy machine takes seconds. */
const DEFAULT_START_MS = 30_000
/** How long a plugin may take to end by itself, and then after SIGTERM. */
const SHUTDOWN_MS = 2_000
const TERM_MS = 1_500

/** Starts the process and waits until it is ready. Throws `BackendError`. */
export async function startProcess(parts: ProcessParts): Promise<PluginProcess> {
  const own = newCertificate(Date.now())
  const directory = newDirectory(parts.isolation)
  const command = commandOf(parts.program, parts.isolation)
  const child = spawnChild(parts, command, own, directory)
  const exited = watch(child, directory.base, parts.program, command)
  const end = () => killAll(child, command)
  const kill = async () => {
    end()
    await exited
  }
  try {
    const shake = await waitForHandshake(child, directory.socket, exited, parts)
    const transport = connectTo(shake, own)
    drain(streamOf(child.stdout))
    return {
      transport,
      exited,
      isRunning: () => child.exitCode === null && child.signalCode === null,
      async stop() {
        await shutDown(child, transport, exited, end)
        transport.close()
      },
      async kill() {
        await kill()
        transport.close()
      },
    }
  } catch (error) {
    await kill()
    throw startFault(parts.name, error)
  }
}

interface Directory {
  readonly base: string
  readonly socket: string
  readonly work: string
}

function newDirectory({ user }: Isolation): Directory {
  // Its path has no links, because the plugin must name its socket without.
  const base = newPlace()
  const directory = { base, socket: join(base, 's'), work: join(base, 'w') }
  for (const path of [directory.socket, directory.work]) mkdirSync(path, { mode: 0o700 })
  if (user === undefined) return directory
  for (const path of [directory.socket, directory.work]) chownSync(path, user.uid, user.gid)
  // Ours, so that we may remove it later, and nobody reads it: the user of the plugin only passes through.
  chmodSync(base, 0o711)
  return directory
}

function spawnChild(
  parts: ProcessParts,
  { words, environment, user }: PluginCommand,
  own: OwnCertificate,
  directory: Directory,
): ChildProcess {
  const { isolation, cookie } = parts
  const [command = '', ...rest] = words
  const child = spawn(command, rest, {
    cwd: directory.work,
    // In a group of its own, which ends as a whole.
    detached: true,
    // Its standard input stays open as long as we live. All our other descriptors are closed when it starts (O_CLOEXEC).
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...isolation.environment,
      ...environment,
      [cookie.key]: cookie.value,
      PLUGIN_PROTOCOL_VERSIONS: '1',
      PLUGIN_UNIX_SOCKET_DIR: directory.socket,
      // Where go-plugin before 1.5 puts its socket.
      TMPDIR: directory.socket,
      PLUGIN_CLIENT_CERT: own.certificate,
    },
    ...user,
  })
  child.stdin?.on('error', () => undefined)
  logLines(streamOf(child.stderr), parts.log, parts.name, () => parts.hide)
  return child
}

/** Cleans up after the process, however it ends. */
async function watch(
  child: ChildProcess,
  base: string,
  program: Program,
  { hasSpace }: PluginCommand,
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  child.once('error', (error) => resolve(`cannot be started: ${error.message}`))
  child.once('exit', (code, signal) => {
    // `unshare` ends with the signal that ended its child, but for this one.
    if (hasSpace && code === 1) resolve('exit code 1 or signal SIGKILL')
    else resolve(code === null ? `signal ${signal}` : `exit code ${code}`)
  })
  const how = await promise
  // What it started and left behind.
  killGroup(child, 'SIGKILL')
  // Another process of it may still be ending.
  rmSync(base, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
  await program.close().catch(() => undefined)
  return how
}

async function waitForHandshake(
  child: ChildProcess,
  directory: string,
  exited: Promise<string>,
  { isolation: { startMs = DEFAULT_START_MS }, signal }: ProcessParts,
): Promise<Handshake> {
  const timer = new AbortController()
  const late = delay(startMs, undefined, { signal: timer.signal, ref: false }).then(() => {
    throw new HandshakeFault(`was not ready within ${startMs / 1_000} seconds`)
  })
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>()
  const onStop = () => stop(new HandshakeFault('was stopped before it was ready'))
  if (signal?.aborted === true) onStop()
  signal?.addEventListener('abort', onStop, { once: true })
  const gone = exited.then((how) => {
    throw new HandshakeFault(`ended before it was ready (${how})`)
  })
  const line = firstLine(streamOf(child.stdout))
  // One of them is reported; the others may fail later.
  for (const one of [late, gone, line, stopped]) one.catch(() => undefined)
  try {
    // A process that ends also closes its output: how it ended says more.
    const first = line.catch((error: unknown) =>
      /ended before/.test(String(error)) ? gone : Promise.reject(error),
    )
    return readHandshake(await Promise.race([first, late, gone, stopped]), directory)
  } finally {
    timer.abort()
    signal?.removeEventListener('abort', onStop)
  }
}

function startFault(name: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error
  const says = error instanceof HandshakeFault ? error.message : 'cannot be started'
  return unavailable(`The plugin ${name} ${says}.`, {
    detail: error instanceof Error ? error.message : String(error),
    cause: error,
  })
}

/** As go-plugin does: ask it, then signal, then kill. */
async function shutDown(
  child: ChildProcess,
  transport: Transport,
  exited: Promise<string>,
  end: () => void,
): Promise<void> {
  // The connection drops with the answer, so whether it arrives says nothing.
  const asking = createClient(GRPCController, transport)
    .shutdown({}, { timeoutMs: SHUTDOWN_MS })
    .catch(() => undefined)
  child.stdin?.end()
  await endsWithin(exited, SHUTDOWN_MS)
  killGroup(child, 'SIGTERM')
  await endsWithin(exited, TERM_MS)
  end()
  await Promise.all([exited, asking])
}

async function endsWithin(exited: Promise<string>, ms: number): Promise<void> {
  const timer = new AbortController()
  const late = delay(ms, undefined, { signal: timer.signal }).catch(() => undefined)
  await Promise.race([exited, late])
  timer.abort()
}

/** In a namespace the plugin itself, so that what waits for it says when nothing is left; else the group. */
function killAll(child: ChildProcess, { hasSpace }: PluginCommand): void {
  const firsts = hasSpace ? childrenOf(child.pid) : []
  if (firsts.length === 0) killGroup(child, 'SIGKILL')
  for (const pid of firsts) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

function childrenOf(pid: number | undefined): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    return text.trim() === '' ? [] : text.trim().split(' ').map(Number)
  } catch {
    // It has ended, or the kernel does not say.
    return []
  }
}

function killGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // Nobody is left in it.
  }
}

function streamOf<T>(stream: T | null): T {
  if (stream === null) throw new Error('the child has no pipes')
  return stream
}
