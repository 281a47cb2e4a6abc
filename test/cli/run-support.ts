import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { shellQuote } from '../../src/domain/formats/shell-word.ts'
import { eventually, type NewAgent } from '../support/app.ts'
import { COMPILE_CACHE } from '../support/compile-cache.ts'
import { MAIN, spawnCli, type World } from './support.ts'

export interface RecordOfRun {
  readonly id: string
  readonly backend: string
  readonly status: string
  /** Newest first. */
  readonly actions: string[]
}

/** An agent of its own, so that a test sees only its own credentials. */
export async function newRunner(world: World, scopes: readonly string[] = ['demo:*']) {
  const agent = await world.app.newAgent({ scopes })
  return { agent, env: { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: agent.token } }
}

/** The server's records of every credential of the agent, oldest first. */
export async function recordsOf(world: World, agent: Pick<NewAgent, 'name'>): Promise<RecordOfRun[]> {
  const { body } = await world.app.admin('GET', `/v1/admin/tokens?agent=${agent.name}`)
  const records = await Promise.all(
    body.map(async ({ id, backend, status }: RecordOfRun): Promise<RecordOfRun> => {
      const audit = await world.app.admin('GET', `/v1/admin/audit?credential=${id}`)
      return { id, backend, status, actions: audit.body.map((entry: { action: string }) => entry.action) }
    }),
  )
  return records.sort((one, other) => one.id.localeCompare(other.id))
}

export interface RunMore {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stdin?: string
}

/** Runs `mayfly run` as a new agent to its end, and reads the server's records of it. */
export async function runTo(world: World, argv: readonly string[], { env: added, ...more }: RunMore = {}) {
  const { agent, env } = await newRunner(world, ['demo:*', 'other.one:*'])
  const end = await spawnCli(['run', ...argv], { env: { ...env, ...added }, ...more }).ended
  return { ...end, agent, records: await recordsOf(world, agent) }
}

/** Resolves once the process has ended, even as a zombie. */
export async function gone(pid: number): Promise<void> {
  await eventually(async () => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    if (stat !== '' && !/\) [ZX] /.test(stat)) throw new Error(`${pid} is still there`)
  })
}

/** Resolves once the process has no pending signal. */
export async function signalled(pid: number): Promise<void> {
  await eventually(async () => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    if (!/^ShdPnd:\s0+$/m.test(status)) throw new Error(`${pid} has a signal before it`)
  })
}

export interface Terminal {
  /** The pid of `mayfly`, the session leader of the terminal. */
  readonly pid: number
  said(wanted: RegExp): Promise<string>
  text(): string
  type(keys: string): void
  /** Closes the terminal, as when a window is closed or a connection breaks. */
  hangUp(): void
}

/** Runs a command line at a real terminal, made by `script` of util-linux. */
export async function openTerminal(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
): Promise<Terminal> {
  const words = [process.execPath, MAIN, ...argv].map(shellQuote)
  const holder = spawn('script', ['-qfc', `echo leader $$; exec ${words.join(' ')}`, '/dev/null'], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env, SHELL: '/bin/sh' },
    cwd: cwd ?? env['HOME'],
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  holder.stdin.on('error', () => {})
  holder.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk
    holder.emit('said')
  })
  const said = async (wanted: RegExp) => {
    while (!wanted.test(shown)) {
      if (holder.exitCode !== null) throw new Error(`it ended: ${shown}`)
      await Promise.race([once(holder, 'said'), once(holder, 'exit')])
    }
    return shown
  }
  const pid = Number(/leader (\d+)/.exec(await said(/leader \d+\r?\n/))?.[1])
  return {
    pid,
    said,
    text: () => shown,
    type: (keys) => holder.stdin.write(keys),
    hangUp: () => holder.kill('SIGKILL'),
  }
}

/**
 * A proxy before the real server that can hold back replies or drop requests. Those about runs have methods of their own:
 * `POST run`, `DELETE run`.
 */
export interface Gate {
  readonly url: string
  /** `hold`: the server handles the request, its reply waits; `drop`: the connection closes before the server sees it. */
  on(method: string, rule: 'pass' | 'hold' | 'drop'): void
  /** Resolves once a reply to such a request is held back. */
  held(method: string): Promise<void>
  /** Resolves once such a request has been dropped. */
  dropped(method: string): Promise<void>
  /** Lets held replies go, and all that follow. */
  release(method: string): void
  close(): Promise<void>
}

export async function openGate(target: string): Promise<Gate> {
  const rules = new Map<string, 'pass' | 'hold' | 'drop'>()
  const events = new EventEmitter()
  const waiting: string[] = []
  const dropped = new Set<string>()
  const server = createServer(async (request, response) => {
    const { method = '', url = '/', headers } = request
    const rule = url.startsWith('/v1/runs') ? `${method} run` : method
    if (rules.get(rule) === 'drop') {
      request.socket.destroy()
      dropped.add(rule)
      events.emit('dropped')
      return
    }
    const body = method === 'POST' ? await text(request) : undefined
    const { authorization = '', 'content-type': type = 'application/json' } = headers
    const key = headers['idempotency-key']
    const reply = await fetch(target + url, {
      method,
      headers: {
        authorization,
        ...(body === '' ? {} : { 'content-type': type }),
        ...(key === undefined ? {} : { 'idempotency-key': String(key) }),
      },
      ...(body === undefined || body === '' ? {} : { body }),
    })
    const answer = await reply.text()
    if (rules.get(rule) === 'hold') {
      waiting.push(rule)
      events.emit('held')
      await once(events, `release ${rule}`)
    }
    response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? '' }).end(answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    on: (method, rule) => void rules.set(method, rule),
    held: async (method) => {
      while (!waiting.includes(method)) await once(events, 'held')
    },
    dropped: async (method) => {
      while (!dropped.has(method)) await once(events, 'dropped')
    },
    release: (method) => {
      rules.set(method, 'pass')
      events.emit(`release ${method}`)
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
