import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { type Host, run } from '../../src/cli/frame/program.ts'
import { type AppOptions, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { COMPILE_CACHE } from '../support/compile-cache.ts'

export const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** A server on a port, a backend `demo` of kind `jwt`, an agent with all its scopes, and a home for the command. */
export interface World {
  readonly app: TestApp
  readonly url: string
  readonly agent: NewAgent
  /** A fresh directory. */
  readonly home: string
  /** HOME, XDG directories and PATH; nothing of Mayfly's but `MAYFLY_KEYCHAIN=off`. */
  readonly bareEnv: Readonly<Record<string, string>>
  /** And with MAYFLY_SERVER and MAYFLY_TOKEN of the agent. */
  readonly env: Readonly<Record<string, string>>
  close(): Promise<void>
}

export async function startWorld(wish: AppOptions & { scopes?: readonly string[] } = {}): Promise<World> {
  const { scopes, ...rest } = wish
  const app = await startApp({ ownIssuer: true, ...rest })
  await app.newBackend({ name: 'demo', max_ttl: '1h', default_ttl: '10m' })
  const agent = await app.newAgent({ scopes: scopes ?? ['demo:*'] })
  const { home, env: bareEnv } = await newHome()
  return {
    app,
    url: app.url,
    agent,
    home,
    bareEnv,
    env: { ...bareEnv, MAYFLY_SERVER: app.url, MAYFLY_TOKEN: agent.token },
    close: async () => {
      await app.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** An empty home, and the environment of somebody who lives there. */
export async function newHome(): Promise<{ home: string; env: Record<string, string> }> {
  const home = await mkdtemp(join(tmpdir(), 'mayfly-home-'))
  const env = {
    HOME: home,
    PATH: process.env['PATH'] ?? '',
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_CACHE_HOME: join(home, 'cache'),
    XDG_DATA_HOME: join(home, 'data'),
    MAYFLY_KEYCHAIN: 'off',
  }
  return { home, env }
}

export interface CliWish {
  readonly env: Readonly<Record<string, string | undefined>>
  /** All of standard input; a terminal gets it as what is typed. */
  readonly stdin?: string
  /** Whether all three streams are terminals. */
  readonly tty?: boolean
  readonly cwd?: string
  readonly signal?: AbortSignal
  /** Of the terminal; 120 without. */
  readonly columns?: number
  /** Is told of what goes to standard error. */
  readonly onSaid?: (text: string) => void
  /** Milliseconds that the command's clock is ahead. */
  readonly ahead?: number
  /** Where standard output goes instead. */
  readonly stdout?: Writable
}

export interface CliEnd {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** One command line in this process, against real servers and files. */
export async function runCli(argv: readonly string[], wish: CliWish): Promise<CliEnd> {
  const out = sink(wish)
  const err = sink(wish, wish.onSaid)
  const stdin = Object.assign(new PassThrough(), { isTTY: wish.tty === true })
  if (wish.tty === true) stdin.write(wish.stdin ?? '')
  else stdin.end(wish.stdin ?? '')
  const host: Host = {
    stdin,
    stdout: wish.stdout ?? out.stream,
    stderr: err.stream,
    env: wish.env,
    cwd: wish.cwd ?? wish.env['HOME'] ?? '/',
    home: wish.env['HOME'] ?? '/',
    platform: process.platform,
    now: () => Date.now() + (wish.ahead ?? 0),
    watchSignals: () => wish.signal ?? new AbortController().signal,
  }
  const code = await run(argv, host)
  return { code, stdout: out.text(), stderr: err.text() }
}

function sink({ tty = false, columns = 120 }: CliWish, told?: (text: string) => void) {
  let text = ''
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      text += String(chunk)
      told?.(String(chunk))
      done()
    },
  })
  return { stream: Object.assign(stream, { isTTY: tty, columns }), text: () => text }
}

export interface SpawnEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Spawned {
  readonly child: ChildProcess
  readonly ended: Promise<SpawnEnd>
  /** Resolves once standard error (or output) holds it; rejects with what there was when the child ends without. */
  said(text: string | RegExp, where?: 'stdout' | 'stderr'): Promise<string>
}

/**
 * One command line as a process of its own, begun by the program `by` with its arguments, of the built command `main`. `stdin`
 * left out: closed at once.
 */
export function spawnCli(
  argv: readonly string[],
  wish: Pick<CliWish, 'env' | 'cwd'> & { stdin?: string | 'open'; by?: readonly string[]; main?: string },
): Spawned {
  const [program = '', ...words] = [...(wish.by ?? []), process.execPath, wish.main ?? MAIN, ...argv]
  const child = spawn(program, words, {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...wish.env } as Record<string, string>,
    cwd: wish.cwd ?? wish.env['HOME'],
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const text = { stdout: '', stderr: '' }
  for (const where of ['stdout', 'stderr'] as const) {
    child[where]?.setEncoding('utf8').on('data', (chunk: string) => {
      text[where] += chunk
      child.emit('said')
    })
  }
  child.stdin?.on('error', () => {})
  if (wish.stdin !== 'open') child.stdin?.end(wish.stdin ?? '')
  const ended = once(child, 'close').then(([code, signal]): SpawnEnd => ({ code, signal, ...text }))
  return {
    child,
    ended,
    said: (wanted, where = 'stderr') =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = typeof wanted === 'string' ? text[where].includes(wanted) : wanted.test(text[where])
          if (found) resolve(text[where])
        }
        child.on('said', look)
        void ended.then((end) => reject(new Error(`it ended: ${JSON.stringify(end)}`)))
        look()
      }),
  }
}

/** The stored files must never hold it, and no terminal must have shown it. */
export function expectNoSecret(text: string, ...secrets: readonly string[]): void {
  for (const secret of secrets) if (text.includes(secret)) throw new Error('a secret is in it')
}
