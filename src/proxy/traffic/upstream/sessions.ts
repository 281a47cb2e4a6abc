import { type ClientHttp2Session, connect } from 'node:http2'
import type { Socket } from 'node:net'
import { ignoreErrors } from '../../sockets.ts'
import { Failure } from '../failure.ts'
import { AS_RECEIVED } from '../flat.ts'
import type { Destination } from './reach.ts'

/** A session, with room for a stream that is counted until `release` is called. */
export interface Taken {
  readonly session: ClientHttp2Session
  release(): void
}

export interface Sessions {
  /** Undefined: the upstream has no HTTP/2. Throws `Failure`. */
  take(): Promise<Taken | undefined>
}

interface Counted {
  readonly session: ClientHttp2Session
  streams: number
}

const IDLE_MS = 40_000
const WINDOW_BYTES = 1024 * 1024
/** So many replies may be read slowly before they hold up the others of their session. */
const SLOW_STREAMS = 64
/** Sessions that end at once are not opened for ever. */
const MOST_TRIES = 3
/** RFC 9113 recommends to allow no fewer; more at a time would only queue. */
const MOST_STREAMS = 100

/** Sessions to one place of one owner. A further one is opened where all are full, so that long streams hold up nobody. */
export function createSessions(open: () => Promise<ClientHttp2Session | undefined>): Sessions {
  const all = new Set<Counted>()
  let opening: Promise<boolean> | undefined

  async function openOne(): Promise<boolean> {
    const session = await open()
    if (session === undefined) return false
    const counted = { session, streams: 0 }
    all.add(counted)
    session.once('close', () => all.delete(counted))
    return true
  }

  return {
    async take() {
      for (let tries = 0; tries <= MOST_TRIES; tries += 1) {
        const found = [...all].find(hasRoom)
        if (found !== undefined) return count(found)
        opening ??= openOne().finally(() => {
          opening = undefined
        })
        if (!(await opening)) return undefined
      }
      throw new Failure('unreachable')
    },
  }
}

function hasRoom({ session, streams }: Counted): boolean {
  if (session.closed || session.destroyed) return false
  const { maxConcurrentStreams = MOST_STREAMS } = session.remoteSettings
  return streams < Math.max(1, Math.min(maxConcurrentStreams, MOST_STREAMS))
}

function count(counted: Counted): Taken {
  counted.streams += 1
  let isOver = false
  return {
    session: counted.session,
    release() {
      if (!isOver) counted.streams -= 1
      isOver = true
    },
  }
}

/** Throws `Failure` where the upstream does not begin to speak in time. */
export function startSession(
  to: Destination,
  socket: Socket,
  timeoutMs: number,
): Promise<ClientHttp2Session> {
  const session = connect(`https://${to.host}:${to.port}`, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    maxSessionMemory: 2 * SLOW_STREAMS,
    ...AS_RECEIVED,
  })
  ignoreErrors(session)
  // Streams have a time of their own: they end as they would have.
  session.setTimeout(IDLE_MS, () => {
    if (!session.destroyed) session.close()
  })
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Failure('too_slow'))
      session.destroy()
    }, timeoutMs)
    session.once('close', () => {
      clearTimeout(timer)
      reject(new Failure('unreachable'))
    })
    session.once('remoteSettings', () => {
      clearTimeout(timer)
      if (!session.destroyed) session.setLocalWindowSize(SLOW_STREAMS * WINDOW_BYTES)
      resolve(session)
    })
  })
}
