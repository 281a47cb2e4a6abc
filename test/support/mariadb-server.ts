import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise'
import { makeCertificates } from './certificates.ts'
import { freePort } from './free-port.ts'

export interface MariadbServer {
  readonly port: number
  /** The PEM of the authority that signed the certificate of the server, for 127.0.0.1 and localhost. */
  readonly ca: string
  /** As root. */
  sql(statement: string): Promise<RowDataPacket[]>
  login(options: { user: string; password?: string; database?: string }): Promise<Connection>
  /** Ends the server, keeps its data. */
  halt(): Promise<void>
  resume(): Promise<void>
  stop(): Promise<void>
}

/** A server of our own on a free port: local ones may be configured in any way, and tests restart theirs. */
export async function startMariadb(flags: readonly string[] = []): Promise<MariadbServer> {
  const home = await mkdtemp(join(tmpdir(), 'mayfly-mariadb-'))
  const certificates = makeCertificates(home)
  const account = accountOfServer(home)
  const data = join(home, 'data')
  execFileSync(
    'mariadb-install-db',
    [
      ...['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
      ...(account === undefined ? [] : ['--user=mysql']),
    ],
    { cwd: home, stdio: 'pipe' },
  )
  const port = await freePort()
  const args = [
    ...['--no-defaults', `--datadir=${data}`, `--port=${port}`, '--bind-address=127.0.0.1,127.0.0.2'],
    ...[`--socket=${join(home, 'socket')}`, `--pid-file=${join(home, 'pid')}`, '--skip-name-resolve'],
    ...[`--ssl-ca=${certificates.ca}`, `--ssl-cert=${join(home, 'server.pem')}`],
    ...[`--ssl-key=${join(home, 'server.key')}`, ...flags],
  ]
  let server: ChildProcess | undefined
  let root: Connection | undefined
  const login: MariadbServer['login'] = (options) =>
    mysql.createConnection({ host: '127.0.0.1', port, ...options })
  const resume = async () => {
    server = spawn('mariadbd', args, { ...account, cwd: home, stdio: ['ignore', 'ignore', 'pipe'] })
    await isReady(server)
  }
  const halt = async () => {
    const child = server
    server = undefined
    root?.destroy()
    root = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
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
    ca: certificates.server.ca,
    async sql(statement) {
      root ??= await login({ user: 'root' })
      const [rows] = await root.query<RowDataPacket[]>(statement)
      return rows
    },
    login,
    halt,
    resume,
    stop,
  }
}

/** MariaDB refuses to run as root: the account `mysql` of its package is used then. */
function accountOfServer(home: string): { uid: number; gid: number } | undefined {
  if (userInfo().uid !== 0) return undefined
  const idOf = (flag: string) =>
    Number(execFileSync('id', [flag, 'mysql'], { stdio: ['ignore', 'pipe', 'pipe'] }))
  const account = { uid: idOf('-u'), gid: idOf('-g') }
  for (const name of ['', 'server.key', 'server.pem', 'ca.pem'])
    chownSync(join(home, name), account.uid, account.gid)
  return account
}

/** It says so when it takes connections. */
async function isReady(server: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    server.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('ready for connections')) resolve()
    })
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`MariaDB ended: ${said.slice(-2000)}`)))
  })
}
