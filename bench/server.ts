import type { ChildProcess } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { spawnNode, stop, temporaryDirectory } from './processes.ts'
import { fetchJson } from './request.ts'

export interface Agent {
  readonly name: string
  readonly token: string
  readonly clientId: string
  readonly clientSecret: string
}

/** A checkout of Mayfly whose server can be started. */
export interface Checkout {
  readonly directory: string
  /** Run src/ instead of dist/. */
  readonly fromSource: boolean
}

export interface OurServer {
  readonly pid: number
  readonly port: number
  /** Calls the API as the local host. */
  admin<T>(method: 'GET' | 'POST', path: string, json?: object): Promise<T>
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly dataDir: string
  readonly databaseUrl?: string | undefined
  readonly checkout: Checkout
  /** Heap flags for Node; `HEAP_FLAGS` unless given. */
  readonly heapFlags?: readonly string[]
  /** Further arguments for Node. */
  readonly nodeArgs?: readonly string[]
  /** Settings. */
  readonly environment?: Readonly<Record<string, string>>
  /** The address of the name server, at port 53, in place of those of `/etc/resolv.conf`. Needs root. */
  readonly nameServer?: string
  /** Called with the port before the server listens on it, and awaited. */
  readonly onPort?: (port: number) => Promise<void>
}

export const OWN_CHECKOUT = join(import.meta.dirname, '..')
/** As in `npm start` and the systemd unit. */
const HEAP_FLAGS = ['--max-semi-space-size=8', '--heap-growing-percent=30']
const START_MS = 60_000

/** The command line program of a checkout. */
export function mainOf({ directory, fromSource }: Checkout): string {
  if (fromSource) return join(directory, 'src/cli/main.ts')
  const built = join(directory, 'dist/bin/mayfly.cjs')
  // Version 0.1 built one file for each source.
  return existsSync(built) ? built : join(directory, 'dist/cli/main.js')
}

/** Starts the real server on a free loopback port. Resolves when it listens. */
export async function startOurs(options: ServerOptions): Promise<OurServer> {
  const port = await freePort()
  const args = ['server', '--data-dir', options.dataDir, '--listen', `127.0.0.1:${port}`]
  if (options.databaseUrl !== undefined) args.push('--database-url', options.databaseUrl)
  const { checkout, heapFlags = HEAP_FLAGS, nodeArgs = [], nameServer, environment } = options
  const words = [...heapFlags, ...nodeArgs, mainOf(checkout), ...args]
  const before = nameServer === undefined ? [] : askingOnly(nameServer)
  const child = spawnNode(words, { ...limitsOf(checkout), ...environment }, before)
  await Promise.all([isListening(child), options.onPort?.(port)])
  return {
    pid: child.pid!,
    port,
    admin: (method, path, json) => fetchJson({ method, path, ...(json === undefined ? {} : { json }) }, port),
    stop: () => stop(child),
  }
}

/** Runs a command that sees another `/etc/resolv.conf`. */
function askingOnly(nameServer: string): string[] {
  const file = join(temporaryDirectory(undefined), 'resolv.conf')
  writeFileSync(file, `nameserver ${nameServer}\n`)
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
  return ['unshare', '--mount', 'sh', '-c', script, file]
}

/** A few agents make all the load. Another checkout may not know the setting, and would not start with it. */
function limitsOf({ directory }: Checkout): Record<string, string> {
  return directory === OWN_CHECKOUT
    ? { MAYFLY_LIMITS_TOKENS_PER_MINUTE: '1000000', MAYFLY_LIMITS_MAX_ACTIVE_PER_AGENT: '1000000' }
    : {}
}

/** Resolves at the log line that says so. Copies errors in the log to standard error. */
function isListening(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('the server did not start')), START_MS)
    child.once('exit', (code) => {
      clearTimeout(late)
      reject(new Error(`the server exited with ${code}`))
    })
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const { msg, level } = readLine(line)
      if (level === 'error') console.error(line)
      if (msg !== 'listening') return
      clearTimeout(late)
      resolve()
    })
  })
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

function readLine(line: string): { msg?: string; level?: string } {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}

export const BACKEND = 'bench'
export const SCOPES = ['orders:read']

/** Creates a `jwt` backend with default settings and agents that may use it. */
export async function addAgents(server: OurServer, agents: number): Promise<Agent[]> {
  const config = { audience: 'https://orders.example' }
  await server.admin('POST', '/v1/admin/backends', { type: 'jwt', name: BACKEND, config })
  const made: Agent[] = []
  for (let n = 0; n < agents; n += 1) {
    const name = `bench-${n}`
    const reply = await server.admin<{ token: string; oidc: { client_id: string; client_secret: string } }>(
      'POST',
      '/v1/admin/agents',
      { name, scopes: [`${BACKEND}:*`] },
    )
    made.push({
      name,
      token: reply.token,
      clientId: reply.oidc.client_id,
      clientSecret: reply.oidc.client_secret,
    })
  }
  return made
}
