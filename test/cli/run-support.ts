import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { eventually, type NewAgent } from '../support/app.ts'
import { MAIN, spawnCli, type World } from './support.ts'

export interface RecordOfRun {
  readonly id: string
  readonly backend: string
  readonly status: string
  /** Newest first. */
  readonly actions: string[]
}

/** An agent of its own, so that what a run did can be told from what others did. */
export async function newRunner(world: World, scopes: readonly string[] = ['demo:*']) {
  const agent = await world.app.newAgent({ scopes })
  return { agent, env: { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: agent.token } }
}

/** What the server has written down of every credential of the agent, oldest first. */
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

/** `mayfly run` of an agent of its own to its end, and what the server has written down of it. */
export async function runTo(world: World, argv: readonly string[], { env: added, ...more }: RunMore = {}) {
  const { agent, env } = await newRunner(world, ['demo:*', 'other.one:*'])
  const end = await spawnCli(['run', ...argv], { env: { ...env, ...added }, ...more }).ended
  return { ...end, agent, records: await recordsOf(world, agent) }
}

/** Ended, also where nobody has asked for its exit code yet. */
export async function gone(pid: number): Promise<void> {
  await eventually(async () => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    if (stat !== '' && !/\) [ZX] /.test(stat)) throw new Error(`${pid} is still there`)
  })
}

/** The process has taken note of every signal that was sent to it. */
export async function signalled(pid: number): Promise<void> {
  await eventually(async () => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    if (!/^ShdPnd:\s0+$/m.test(status)) throw new Error(`${pid} has a signal before it`)
  })
}

export interface Terminal {
  /** Of `mayfly`, which leads the session of the terminal. */
  readonly pid: number
  said(wanted: RegExp): Promise<string>
  text(): string
  type(keys: string): void
  /** Takes the terminal away, as when a window is closed or a connection breaks. */
  hangUp(): void
}

/** A command line of ours at a real terminal, which `script` of util-linux makes. */
export async function openTerminal(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
): Promise<Terminal> {
  const words = [process.execPath, MAIN, ...argv].map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
  const holder = spawn('script', ['-qfc', `echo leader $$; exec ${words.join(' ')}`, '/dev/null'], {
    env: { ...env, SHELL: '/bin/sh' },
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

/** Stands before the real server, and keeps back or drops what a test says. */
export interface Gate {
  readonly url: string
  /** `hold`: the server does it, and its answer waits; `drop`: the connection is closed before the server sees it. */
  on(method: string, rule: 'pass' | 'hold' | 'drop'): void
  /** Resolves when the server's answer to such a request is being kept back. */
  held(method: string): Promise<void>
  /** Lets out what was kept back, and all that follows. */
  release(method: string): void
  close(): Promise<void>
}

export async function openGate(target: string): Promise<Gate> {
  const rules = new Map<string, 'pass' | 'hold' | 'drop'>()
  const events = new EventEmitter()
  const waiting: string[] = []
  const server = createServer(async (request, response) => {
    const { method = '', url = '/', headers } = request
    if (rules.get(method) === 'drop') {
      request.socket.destroy()
      return
    }
    const body = method === 'POST' ? await text(request) : undefined
    const { authorization = '', 'content-type': type = 'application/json' } = headers
    const key = headers['idempotency-key']
    const reply = await fetch(target + url, {
      method,
      headers: {
        authorization,
        'content-type': type,
        ...(key === undefined ? {} : { 'idempotency-key': String(key) }),
      },
      ...(body === undefined ? {} : { body }),
    })
    const answer = await reply.text()
    if (rules.get(method) === 'hold') {
      waiting.push(method)
      events.emit('held')
      await once(events, `release ${method}`)
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
