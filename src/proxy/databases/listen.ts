import { once } from 'node:events'
import { chmod } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createAdmission } from '../admission.ts'
import type { DatabaseParts } from './parts.ts'

/** Of a Unix socket, without the byte that ends it (unix(7), sun_path). */
const MAX_PATH = 107
const MOST_TRIES = 1_000
export const LOOPBACK = '127.0.0.1'
const KEEP_ALIVE_MS = 30_000

/** What the child has once it is known to be no other user's. */
export type OnChild = (child: Socket, options: { readonly provesItself: boolean }) => void

type Rules = Pick<DatabaseParts, 'uids' | 'log' | 'host'>

/** A socket of the first name that is free. Throws where the path is too long. */
export async function listenOnSocket(
  directory: string,
  nameOf: (number: number) => string,
  onChild: OnChild,
): Promise<{ server: Server; path: string; number: number }> {
  for (let number = 0; number < MOST_TRIES; number += 1) {
    const path = join(directory, nameOf(number))
    if (Buffer.byteLength(path) > MAX_PATH) {
      throw new Error(
        `The path of the socket is longer than ${MAX_PATH} bytes: ${path}. Use a shorter directory.`,
      )
    }
    const server = newServer((child) => onChild(child, { provesItself: false }))
    if (!(await isListening(server, { path }))) continue
    await chmod(path, 0o600)
    return { server, path, number }
  }
  throw new Error(`There is no free name for a socket in ${directory}.`)
}

/** A port on 127.0.0.1 or `host`. */
export async function listenOnPort(
  rules: Rules,
  onChild: OnChild,
): Promise<{ server: Server; port: number }> {
  const mayConnect = createAdmission(rules)
  const server = newServer(async (child) => {
    if (!(await mayConnect(child))) child.resetAndDestroy()
    else if (!child.destroyed) onChild(child, { provesItself: true })
  })
  await isListening(server, { host: rules.host ?? LOOPBACK, port: 0 })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The port has no number.')
  return { server, port: address.port }
}

function newServer(onChild: (child: Socket) => unknown): Server {
  const options = {
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  }
  return createServer(options, (child) => {
    child.on('error', () => undefined)
    onChild(child)
  })
}

/** False where the address is taken. */
async function isListening(
  server: Server,
  at: { path: string } | { host: string; port: number },
): Promise<boolean> {
  try {
    server.listen(at)
    await once(server, 'listening')
    return true
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false
    throw error
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : '')
