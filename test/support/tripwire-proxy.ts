import { connect, createServer, type Socket } from 'node:net'

export interface Tripwire {
  /** What a client says on one connection in one transaction, in this order; the wire is the message with the last of it. */
  readonly sees: readonly string[]
  /**
   * `arrival`: not passed on, and lost. `delayed`: not passed on before `release`, by when its client may be gone.
   * `answered`: passed on and wholly answered, and the answer held back before `release`.
   */
  readonly at: 'arrival' | 'delayed' | 'answered'
}

export interface TripwireProxy {
  readonly port: number
  /** Once; a later one takes the place of one that has not been touched. */
  arm(wire: Tripwire, onTouch: () => void): void
  /** Sends on what was kept back; to the server even where its client is gone. */
  release(): void
  close(): Promise<void>
}

interface Connection {
  readonly client: Socket
  readonly server: Socket
  /** Not yet looked at for the wire, of which so many words have been seen. */
  said: string
  seen: number
  /** The wire that was touched here; nothing passes any more. */
  touched: { wire: Tripwire; onTouch: () => void } | undefined
  readonly kept: Buffer[]
  answer: Buffer
}

/** ReadyForQuery (PostgreSQL protocol, 55.7), in whatever state of transaction: the server is done. */
const READY = ['I', 'T', 'E'].map((state) => Buffer.from(`Z\0\0\0\u0005${state}`))
const LOOK_BACK = 65_536
const COMMIT = 'COMMIT'

/** Stands before a PostgreSQL server, and at one message of a client lets the world end. */
export async function startTripwireProxy(upstream: { host: string; port: number }): Promise<TripwireProxy> {
  const open = new Set<Connection>()
  let armed: { wire: Tripwire; onTouch: () => void } | undefined

  const listener = createServer((client) => {
    const server = connect(upstream.port, upstream.host)
    const connection: Connection = {
      client,
      server,
      said: '',
      seen: 0,
      touched: undefined,
      kept: [],
      answer: Buffer.alloc(0),
    }
    open.add(connection)
    client.on('error', () => undefined)
    server.on('error', () => undefined)
    client.on('close', () => {
      if (connection.touched?.wire.at !== 'delayed') server.destroy()
    })
    server.on('close', () => {
      open.delete(connection)
      client.destroy()
    })
    client.on('data', (chunk) => fromClient(connection, chunk))
    server.on('data', (chunk) => fromServer(connection, chunk))
  })

  function fromClient(connection: Connection, chunk: Buffer): void {
    if (connection.touched !== undefined && connection.touched.wire.at !== 'answered') {
      connection.kept.push(chunk)
      return
    }
    if (armed !== undefined && connection.touched === undefined && touches(connection, chunk, armed.wire)) {
      connection.touched = armed
      armed = undefined
      if (connection.touched.wire.at !== 'answered') {
        connection.kept.push(chunk)
        connection.touched.onTouch()
        return
      }
    }
    connection.server.write(chunk)
  }

  function fromServer(connection: Connection, chunk: Buffer): void {
    const { touched } = connection
    if (touched?.wire.at !== 'answered') {
      connection.client.write(chunk)
      return
    }
    connection.answer = Buffer.concat([connection.answer, chunk])
    if (READY.some((end) => connection.answer.subarray(-end.length).equals(end))) touched.onTouch()
  }

  const { promise, resolve, reject } = Promise.withResolvers<void>()
  listener.once('error', reject)
  listener.listen(0, '127.0.0.1', resolve)
  await promise
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    arm: (wire, onTouch) => {
      armed = { wire, onTouch }
      for (const connection of open) Object.assign(connection, { said: '', seen: 0 })
    },
    release: () => {
      for (const connection of open) {
        const { client, server, touched } = connection
        if (touched === undefined || touched.wire.at === 'arrival') continue
        connection.touched = undefined
        client.write(connection.answer)
        for (const chunk of connection.kept.splice(0)) server.write(chunk)
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

function touches(connection: Connection, chunk: Buffer, wire: Tripwire): boolean {
  connection.said = (connection.said + chunk.toString('latin1')).slice(-LOOK_BACK)
  for (let next = wire.sees[connection.seen]; next !== undefined; next = wire.sees[connection.seen]) {
    const at = connection.said.indexOf(next)
    const end = connection.said.indexOf(COMMIT)
    if (next !== COMMIT && end !== -1 && (at === -1 || end < at)) {
      // The sweeper may have settled another credential on this connection just before.
      connection.seen = 0
      connection.said = connection.said.slice(end + COMMIT.length)
      continue
    }
    if (at === -1) return false
    connection.seen += 1
    connection.said = connection.said.slice(at + next.length)
  }
  return true
}
