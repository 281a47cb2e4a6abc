import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Issued } from '../../src/backends/kind.ts'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

const run = promisify(execFile)
const SSHD = '/usr/sbin/sshd'

export interface SshServer {
  readonly directory: string
  /** Runs a command through `ssh` with the credential; the caller's key is used where the credential has none. */
  login(issued: Pick<Issued, 'fields'>, command: string, key?: string): Promise<string>
  /** The same as arguments of `ssh`, for a session that stays open. */
  argsFor(issued: Pick<Issued, 'fields'>, key?: string): Promise<readonly string[]>
  /** Replaces the list of revoked keys, which sshd reads at every login. */
  revoke(list: Uint8Array): Promise<void>
  /** What sshd has logged so far. */
  logged(): string
  stop(): Promise<void>
}

/** An sshd that trusts only this CA, and lets those log in who bear one of these principals. */
export async function startSshServer(
  caPublicKey: string,
  principals: readonly string[],
  emptyList: Uint8Array,
): Promise<SshServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-sshd-'))
  const at = (name: string) => join(directory, name)
  const user = userInfo().username
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('own')])
  await writeFile(at('ca.pub'), `${caPublicKey}\n`)
  await writeFile(at(`principals-${user}`), `${principals.join('\n')}\n`)
  await writeFile(at('revoked'), emptyList)
  const sshd = await startSshd(directory, [
    ...[`TrustedUserCAKeys ${at('ca.pub')}`, `RevokedKeys ${at('revoked')}`],
    `AuthorizedPrincipalsFile ${directory}/principals-%u`,
  ])
  const { port } = sshd
  let count = 0
  const argsFor = async ({ fields = {} }: Pick<Issued, 'fields'>, key = at('own')) => {
    count += 1
    const name = at(`login-${count}`)
    if (fields['private_key'] !== undefined)
      await writeFile(name, String(fields['private_key']), { mode: 0o600 })
    await writeFile(`${name}-cert.pub`, `${fields['certificate']}\n`)
    return [
      ...['-F', 'none', '-p', String(port), '-i', fields['private_key'] === undefined ? key : name],
      ...['-o', `CertificateFile=${name}-cert.pub`, '-o', 'IdentitiesOnly=yes', '-o', 'IdentityAgent=none'],
      ...['-o', 'BatchMode=yes', '-o', `UserKnownHostsFile=${at('known')}`, `${user}@127.0.0.1`],
    ]
  }
  return {
    directory,
    argsFor,
    login: async (issued, command, key) =>
      (await run('ssh', [...(await argsFor(issued, key)), command])).stdout.trim(),
    revoke: (list) => writeFile(at('revoked'), list),
    logged: sshd.logged,
    async stop() {
      await sshd.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export interface Sshd {
  readonly port: number
  logged(): string
  /** It reads its configuration again, as `systemctl reload ssh` has it do. */
  reload(): Promise<void>
  stop(): Promise<void>
}

/** An sshd with keys alone. Its own files are in the directory, with `known`, by which clients know it. */
export async function startSshd(directory: string, settings: readonly string[]): Promise<Sshd> {
  const at = (name: string) => join(directory, name)
  const port = await freePort()
  // Where sshd, as root, separates its privileges; the service makes it at its start.
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('host')])
  const lines = [
    ...[`Port ${port}`, 'ListenAddress 127.0.0.1', `HostKey ${at('host')}`, 'PidFile none'],
    ...['AuthorizedKeysFile none', 'PasswordAuthentication no', 'KbdInteractiveAuthentication no'],
    ...['StrictModes no', 'UsePAM no', 'LogLevel VERBOSE', 'UseDNS no', ...settings, ''],
  ]
  await writeFile(at('sshd_config'), lines.join('\n'))
  // Since 9.8 sshd shuts out addresses with failed logins for a while.
  const lenient = ['-o', 'PerSourcePenalties=no']
  const knows = await run(SSHD, ['-t', '-f', at('sshd_config'), ...lenient]).then(
    () => true,
    () => false,
  )
  let log = ''
  const start = async () => {
    const child = spawn(SSHD, ['-D', '-e', '-f', at('sshd_config'), ...(knows ? lenient : [])], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`sshd ended: ${log}`)
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect').finally(() => socket.destroy())
    })
    return child
  }
  let child = await start()
  const stop = async () => {
    child.kill()
    if (child.exitCode === null) await once(child, 'exit')
  }
  await writeFile(at('known'), `[127.0.0.1]:${port} ${await readFile(at('host.pub'), 'utf8')}`)
  return {
    port,
    logged: () => log,
    // A SIGHUP would do the same, with no sign of when it is done.
    async reload() {
      await stop()
      child = await start()
    },
    stop,
  }
}
