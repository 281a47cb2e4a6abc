import { createPrivateKey } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { chmodSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../domain/fault.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import { adminSocketOf, SocketPathTooLong, withSocketPath } from '../files/admin-socket.ts'
import type { HttpServer } from '../http/server/server.ts'

/** Whether other machines may connect, and nothing says that TLS ends in front of this server. */
export function isOpenWithoutTls({ listen, tls, issuer, trustedProxies }: Config): boolean {
  const isBehindTls = issuer.startsWith('https:') || trustedProxies.length > 0
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host
  return tls === undefined && !isBehindTls && !isLoopbackHost(host)
}

/** Returns the base address. Throws `ConfigError` for faults that the operator can fix. */
export async function listenOnPort(server: HttpServer, config: Config): Promise<string> {
  const { host, port } = config.listen
  try {
    // For `localhost` the framework would open a second listener on `::1`, without our limits. Resolve it to IPv4:
    // clients that use a number use 127.0.0.1, and clients that use the name try both.
    const address = host === 'localhost' ? (await lookup(host, { order: 'ipv4first' })).address : host
    return await server.listen({ host: address, port })
  } catch (error) {
    const where = `${host}:${port}`
    const reasons: Record<string, string> = {
      EADDRINUSE: `${where} is in use, perhaps by another Mayfly: stop it or choose another address`,
      EACCES: `this user may not listen on ${where}: choose a port above 1023 or grant CAP_NET_BIND_SERVICE`,
      EADDRNOTAVAIL: `this machine has no address ${host}`,
    }
    const message = reasons[codeOf(error)]
    throw message === undefined ? error : fault('listen', message)
  }
}

/**
 * Listens on `admin.sock` in the data directory. Anyone who can open it is an administrator, so it has mode 0600 before
 * it appears there. Returns the function that removes it. Throws `ConfigError`.
 */
export async function listenOnAdminSocket(server: Server, dataDir: string): Promise<() => void> {
  const path = adminSocketOf(dataDir)
  await refuseOccupied(path)
  let directory: string | undefined
  try {
    directory = mkdtempSync(`${path}.`)
    const draft = join(directory, 's')
    await withSocketPath(draft, (short) => listenOnPath(server, short))
    chmodSync(draft, 0o600)
    const { ino } = lstatSync(draft)
    renameSync(draft, path)
    return () => {
      if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true })
    }
  } catch (error) {
    if (error instanceof SocketPathTooLong)
      throw fault('data_dir', `${dataDir} is too long for the path of a unix socket: choose a shorter one`)
    const why = `${path} cannot be created (${codeOf(error)})`
    throw fault('data_dir', `${why}: choose a directory that this user can write, on a local file system`)
  } finally {
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
  }
}

function listenOnPath(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** A socket that a killed server left behind is replaced; anything else at that path is refused. */
async function refuseOccupied(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw fault('data_dir', `${path} exists and is not a socket: move it away`)
  if (await withSocketPath(path, isListenedTo)) {
    const what = `${path} is in use, perhaps by another Mayfly`
    throw fault('data_dir', `${what}: stop it or choose another directory`)
  }
}

function isListenedTo(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', (error) => resolve(!['ECONNREFUSED', 'ENOENT'].includes(codeOf(error))))
  })
}

/** Reads and checks certificate and key; OpenSSL's own messages name neither file. Throws `ConfigError`. */
export function readTls(files: NonNullable<Config['tls']>): { cert: Buffer; key: Buffer } {
  const cert = readPem('tls_cert_file', files.certFile)
  const key = readPem('tls_key_file', files.keyFile)
  attempt('tls_cert_file', `${files.certFile} contains no certificate in PEM form`, () =>
    createSecureContext({ cert }),
  )
  attempt('tls_key_file', `${files.keyFile} contains no unencrypted private key in PEM form`, () =>
    createPrivateKey(key),
  )
  attempt('tls_key_file', `${files.keyFile} is not the key of the certificate in ${files.certFile}`, () =>
    createSecureContext({ cert, key }),
  )
  return { cert, key }
}

function readPem(source: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw fault(source, `${file} cannot be read (${codeOf(error)})`)
  }
}

function attempt(source: string, message: string, work: () => unknown): void {
  try {
    work()
  } catch (error) {
    throw fault(source, `${message} (${codeOf(error)})`)
  }
}

function fault(source: string, message: string): ConfigError {
  return new ConfigError([{ source, message }])
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
