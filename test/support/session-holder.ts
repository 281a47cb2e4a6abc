import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface SessionEnd {
  /** When it was seen, in epoch ms. */
  readonly at: number
  /** The code of the error, such as `ECONNRESET`; empty: it was closed in peace. */
  readonly code: string
}

export interface SessionHolder extends AsyncDisposable {
  /** Resolves once all have ended. */
  readonly ended: Promise<readonly SessionEnd[]>
  /** How many have ended until now. */
  endedSoFar(): number
  /** One in ten asks for an endless reply, and reads it as fast as it comes. Resolves once all of those have a part of it. */
  begin(): Promise<void>
}

/**
 * A process that keeps so many sessions open, a half idle, the others in a query that waits. `url`: of the port of a proxy.
 * Returns once all of them work.
 */
export async function holdSessions(url: string, count: number): Promise<SessionHolder> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, url, `${count}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  const ends: SessionEnd[] = []
  const ready = Promise.withResolvers<void>()
  const busy = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<readonly SessionEnd[]>()
  lines.on('line', (line) => {
    if (line === 'ready') return ready.resolve()
    if (line === 'busy') return busy.resolve()
    const [at, code = ''] = line.split(' ')
    ends.push({ at: Number(at), code })
    if (ends.length === count) ended.resolve(ends)
  })
  child.stdin.on('error', () => undefined)
  child.once('exit', () => {
    const error = new Error('the holder of sessions ended')
    for (const { reject } of [ready, busy]) reject(error)
  })
  busy.promise.catch(() => undefined)
  await ready.promise
  return {
    ended: ended.promise,
    endedSoFar: () => ends.length,
    begin: () => {
      child.stdin.write('begin\n')
      return busy.promise
    },
    async [Symbol.asyncDispose]() {
      const gone = child.exitCode ?? child.signalCode
      child.kill('SIGKILL')
      if (gone === null) await once(child, 'exit')
    },
  }
}

const PROGRAM = `
  const [, url, count] = process.argv
  const nothing = () => {}
  const watch = (socket) => {
    let code = ''
    socket.on('error', (error) => { code = error.code })
    socket.once('close', () => console.log(performance.timeOrigin + performance.now(), code))
  }
  const drain = (socket, take = nothing) => new Promise((resolve) => {
    socket.removeAllListeners('data').on('data', take).once('data', resolve)
  })
  const openers = {
    async postgresql(n) {
      const { default: pg } = await import('pg')
      const client = new pg.Client({ connectionString: url })
      client.on('error', nothing)
      await client.connect()
      const { stream } = client.connection
      watch(stream)
      if (n % 2 === 1) client.query('SELECT pg_sleep(600)').catch(nothing)
      if (n % 10 === 2) return () => {
        client.connection.query("COPY (SELECT repeat('x', 1000), generate_series(1, 100000000)) TO STDOUT")
        return drain(stream)
      }
    },
    async mysql(n) {
      const { default: mysql } = await import('mysql2')
      const client = mysql.createConnection(url)
      client.on('error', nothing)
      await new Promise((resolve, reject) => client.connect((error) => (error ? reject(error) : resolve())))
      watch(client.stream)
      if (n % 2 === 1) client.query('SELECT SLEEP(600)', nothing)
      if (n % 10 === 2) return () => {
        client.query("SELECT REPEAT('x', 1000) FROM seq_1_to_100000000", nothing)
        return drain(client.stream)
      }
    },
    async redis(n) {
      const { connect } = await import('node:net')
      const { port, username, password } = new URL(url)
      const socket = connect(Number(port), '127.0.0.1')
      watch(socket)
      socket.write(['AUTH', username, password].join(' ') + '\\r\\n')
      await new Promise((resolve) => socket.once('data', resolve))
      if (n % 2 === 1) socket.write('BLPOP never 0\\r\\n')
      if (n % 10 === 2) return () => {
        let got = 0
        const ask = () => socket.write('GET big\\r\\n'.repeat(20))
        ask()
        return drain(socket, (bytes) => { for (got += bytes.length; got > 10_000_000; got -= 20_000_000) ask() })
      }
    },
  }
  const open = openers[new URL(url).protocol.slice(0, -1)]
  const busy = await Promise.all(Array.from({ length: Number(count) }, (_, n) => open(n)))
  process.stdin.once('data', async () => {
    await Promise.all(busy.map((begin) => begin?.()))
    console.log('busy')
  })
  console.log('ready')
`
