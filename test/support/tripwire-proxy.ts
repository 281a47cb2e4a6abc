import { connect, createServer, type Socket } from 'node:net'

export interface Tripwire {
  /** Texts that a client sends in one transaction, in this order; the message with the last one trips the wire. */
  readonly sees: readonly string[]
  /**
   * `arrival`: the proxy drops the message. `delayed`: it forwards the message only at `release`, when the client may be
   * gone. `answered`: it forwards the message and holds back the complete answer until `release`.
   */
  readonly at: 'arrival' | 'delayed' | 'answered'
}

/** Whether what a server has sent since the wire tripped is a complete answer. */
export type IsAnswered = (answer: Buffer) => boolean

export interface TripwireProxy {
  readonly port: number
  /** Trips once; arming again replaces a wire that has not tripped. */
  arm(wire: Tripwire, onTrip: () => void): void
  /** Forwards what the proxy held back; to the server even if its client is gone. */
  release(): void
  close(): Promise<void>
}

interface Connection {
  readonly client: Socket
  readonly server: Socket
  /** Text not yet matched, and the number of texts of the wire matched so far. */
  unmatched: string
  matched: number
  /** The wire that tripped on this connection; nothing passes any more. */
  tripped: { wire: Tripwire; onTrip: () => void } | undefined
  readonly held: Buffer[]
  answer: Buffer
}

/** ReadyForQuery (PostgreSQL protocol, 55.7) in each transaction state: the server has answered completely. */
const READY = ['I', 'T', 'E'].map((state) => Buffer.from(`Z\0\0\0\u0005${state}`))
export const isPostgresReady: IsAnswered = (answer) =>
  READY.some((end) => answer.subarray(-end.length).equals(end))
const LOOK_BACK = 65_536
const COMMIT = 'COMMIT'

/** A proxy in front of a server, of PostgreSQL unless said, that stops forwarding at one message of a client. */
export async function startTripwireProxy(
  upstream: { host: string; port: number },
  isAnswered: IsAnswered = isPostgresReady,
): Promise<TripwireProxy> {
  const open = new Set<Connection>()
  let armed: { wire: Tripwire; onTrip: () => void } | undefined

  const listener = createServer((client) => {
    const server = connect(upstream.port, upstream.host)
    const connection: Connection = {
      client,
      server,
      unmatched: '',
      matched: 0,
      tripped: undefined,
      held: [],
      answer: Buffer.alloc(0),
    }
    open.add(connection)
    client.on('error', () => undefined)
    server.on('error', () => undefined)
    client.on('close', () => {
      if (connection.tripped?.wire.at !== 'delayed') server.destroy()
    })
    server.on('close', () => {
      open.delete(connection)
      client.destroy()
    })
    client.on('data', (chunk) => fromClient(connection, chunk))
    server.on('data', (chunk) => fromServer(connection, chunk))
  })

  function fromClient(connection: Connection, chunk: Buffer): void {
    if (connection.tripped !== undefined && connection.tripped.wire.at !== 'answered') {
      connection.held.push(chunk)
      return
    }
    if (armed !== undefined && connection.tripped === undefined && trips(connection, chunk, armed.wire)) {
      connection.tripped = armed
      armed = undefined
      if (connection.tripped.wire.at !== 'answered') {
        connection.held.push(chunk)
        connection.tripped.onTrip()
        return
      }
    }
    connection.server.write(chunk)
  }

  function fromServer(connection: Connection, chunk: Buffer): void {
    const { tripped } = connection
    if (tripped?.wire.at !== 'answered') {
      connection.client.write(chunk)
      return
    }
    connection.answer = Buffer.concat([connection.answer, chunk])
    if (isAnswered(connection.answer)) tripped.onTrip()
  }

  const { promise, resolve, reject } = Promise.withResolvers<void>()
  listener.once('error', reject)
  listener.listen(0, '127.0.0.1', resolve)
  await promise
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return {
    port: address.port,
    arm: (wire, onTrip) => {
      armed = { wire, onTrip }
      for (const connection of open) Object.assign(connection, { unmatched: '', matched: 0 })
    },
    release: () => {
      for (const connection of open) {
        const { client, server, tripped } = connection
        if (tripped === undefined || tripped.wire.at === 'arrival') continue
        connection.tripped = undefined
        client.write(connection.answer)
        for (const chunk of connection.held.splice(0)) server.write(chunk)
        if (client.destroyed) server.end()
      }
    },
    close: async () => {
      for (const { client, server } of open) {
        client.destroy()
        server.destroy()
      }
      const closed = Promise.withResolvers<void>()
      listener.close(() => closed.resolve())
      await closed.promise
    },
  }
}

function trips(connection: Connection, chunk: Buffer, wire: Tripwire): boolean {
  connection.unmatched = (connection.unmatched + chunk.toString('latin1')).slice(-LOOK_BACK)
  for (let next = wire.sees[connection.matched]; next !== undefined; next = wire.sees[connection.matched]) {
    const at = connection.unmatched.indexOf(next)
    const end = connection.unmatched.indexOf(COMMIT)
    if (next !== COMMIT && end !== -1 && (at === -1 || end < at)) {
      // The sweeper may just have settled another credential on this connection.
      connection.matched = 0
      connection.unmatched = connection.unmatched.slice(end + COMMIT.length)
      continue
    }
    if (at === -1) return false
    connection.matched += 1
    connection.unmatched = connection.unmatched.slice(at + next.length)
  }
  return true
}
