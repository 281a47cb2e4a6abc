import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'

/** A server of a built command, as an operator runs it. */
export interface BuiltServer {
  readonly address: string
  /** Of the agent that `--quickstart` made, which may use the backend `demo`; empty without. */
  readonly token: string
  signal(name: NodeJS.Signals): void
  /** SIGTERM. Resolves with the exit code. */
  stop(): Promise<number | null>
  readonly ended: Promise<number | null>
  logged(): string
}

const alive = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

/** Starts `command server` on a free port, with a backend and an agent to try it with. */
export function startBuilt(
  command: readonly string[],
  dataDir: string,
  env: Readonly<Record<string, string>>,
): Promise<BuiltServer> {
  return startLine(
    [...command, 'server', '--quickstart', '--data-dir', dataDir, '--listen', '127.0.0.1:0'],
    env,
  )
}

/** Resolves when the server of this line listens; rejects with its output if it does not. */
export async function startLine(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<BuiltServer> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  alive.add(child)
  const lines: string[] = []
  const ended = once(child, 'exit').then(
    ([code]): number | null => {
      alive.delete(child)
      return code
    },
    // It could not be started, which is reported below.
    () => null,
  )
  const address = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        if (line.includes('"msg":"listening"')) resolve(JSON.parse(line).address)
      })
    child.once('error', reject)
    void ended.then((code) => reject(new Error(`the server ended with ${code}:\n${lines.join('\n')}`)))
  })
  return {
    address,
    token: /ckr_[0-9a-f]{48}/.exec(lines.join('\n'))?.[0] ?? '',
    signal: (name) => void child.kill(name),
    ended,
    stop: () => {
      child.kill('SIGTERM')
      return ended
    },
    logged: () => lines.join('\n'),
  }
}

/** The status of the console, and of each file that its page names. */
export async function consoleStatus({ address }: Pick<BuiltServer, 'address'>): Promise<number[]> {
  const path = '/console/agents/first-agent'
  // It listens on a port that its issuer does not know, and to which the page would lead.
  const moved = await fetch(`${address}${path}`, { redirect: 'manual' })
  const { host } = new URL(moved.headers.get('location') ?? address)
  const page = await get(`${address}${path}`, { host })
  const names = [...page.body.toString().matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)]
  const replies = await Promise.all(
    names.map(async ([, name = '']) => {
      const { status, body } = await get(`${address}${name}`, { host, 'accept-encoding': 'br' })
      return body.length > 0 ? status : 0
    }),
  )
  return [page.status, ...replies]
}

async function get(url: string, headers: Readonly<Record<string, string>>) {
  const asked = request(url, { headers, agent: false }).end()
  const [reply] = (await once(asked, 'response')) as [IncomingMessage]
  return { status: reply.statusCode ?? 0, body: await buffer(reply) }
}

/** The status of the documentation for browsers, and of each script that it loads. */
export async function docsStatus({ address }: BuiltServer): Promise<number[]> {
  const page = await fetch(`${address}/docs`)
  const scripts = [...(await page.text()).matchAll(/ src="([^"]+)"/g)].map(
    ([, path]) => new URL(path ?? '', page.url),
  )
  const replies = await Promise.all(scripts.map(async (url) => (await fetch(url)).status))
  return [page.status, ...replies]
}
