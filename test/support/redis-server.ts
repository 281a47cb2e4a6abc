import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { makeCertificates } from './certificates.ts'
import { freePort } from './free-port.ts'

export interface RedisServer {
  readonly port: number
  readonly tlsPort: number
  /** The PEM of the authority that signed the certificate of the server, for 127.0.0.1 and localhost. */
  readonly ca: string
  /** As the administrator. */
  call(...command: [string, ...string[]]): Promise<unknown>
  /** A connection of this user, whose commands fail when it ends. */
  login(user: { username: string; password: string }): Redis
  /** Ends the server without a warning. */
  halt(): Promise<void>
  resume(): Promise<void>
  /** Stops and continues the process: meanwhile it answers nothing. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

const ROOT = { username: 'root', password: 'root-password' }

/** A server of our own on free ports, with these users in its ACL file. */
export async function startRedis(users: readonly string[]): Promise<RedisServer> {
  const home = await mkdtemp(join(tmpdir(), 'mayfly-redis-'))
  const certificates = makeCertificates(home)
  const [port, tlsPort] = [await freePort(), await freePort()]
  const all = ['user default off', `user ${ROOT.username} on >${ROOT.password} ~* &* +@all`, ...users]
  await writeFile(join(home, 'users.acl'), `${all.join('\n')}\n`)
  const args = [
    ...['--port', `${port}`, '--bind', '127.0.0.1', '127.0.0.2', '--save', '', '--dir', home],
    ...['--aclfile', join(home, 'users.acl'), '--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', join(home, 'server.pem'), '--tls-key-file', join(home, 'server.key')],
    ...['--tls-ca-cert-file', certificates.ca],
  ]
  let server: ChildProcess | undefined
  let root: Redis | undefined
  const login: RedisServer['login'] = (user) => {
    const client = new Redis({
      port,
      ...user,
      protocol: 2,
      retryStrategy: null,
      disableClientInfo: true,
      enableReadyCheck: false,
    })
    client.on('error', () => undefined)
    return client
  }
  const resume = async () => {
    server = spawn('redis-server', args, { cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
    await isReady(server)
  }
  const halt = async () => {
    const child = server
    server = undefined
    root?.disconnect()
    root = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
  const killAtExit = () => server?.kill('SIGKILL')
  process.on('exit', killAtExit)
  const stop = async () => {
    await halt()
    process.off('exit', killAtExit)
    await rm(home, { recursive: true, force: true })
  }
  try {
    await resume()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    tlsPort,
    ca: certificates.server.ca,
    async call(name, ...rest) {
      root ??= login(ROOT)
      return root.call(name, ...rest)
    },
    login,
    halt,
    resume,
    freeze: () => server?.kill('SIGSTOP'),
    thaw: () => server?.kill('SIGCONT'),
    stop,
  }
}

/** It says so when it takes connections. */
async function isReady(server: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    server.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('Ready to accept connections')) resolve()
    })
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`Redis ended: ${said.slice(-2000)}`)))
  })
}
