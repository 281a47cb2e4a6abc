import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface SessionHolder extends AsyncDisposable {
  /** When each session was seen to end, in epoch ms; resolves once all have. */
  readonly ended: Promise<readonly number[]>
}

/**
 * A process that keeps so many sessions open, a half idle, the others in a query that waits, and one in ten in an
 * endless reply that is read as fast as it comes. `url`: of the port of a proxy. Returns once all of them work.
 */
export async function holdSessions(url: string, count: number): Promise<SessionHolder> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, url, `${count}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  const times: number[] = []
  const ready = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<readonly number[]>()
  lines.on('line', (line) => {
    if (line === 'ready') return ready.resolve()
    times.push(Number(line))
    if (times.length === count) ended.resolve(times)
  })
  child.once('exit', () => ready.reject(new Error('the holder of sessions ended')))
  await ready.promise
  return {
    ended: ended.promise,
    async [Symbol.asyncDispose]() {
      const gone = child.exitCode ?? child.signalCode
      child.kill('SIGKILL')
      if (gone === null) await once(child, 'exit')
    },
  }
}

const PROGRAM = `
  const [, url, count] = process.argv
  const note = () => console.log(performance.timeOrigin + performance.now())
  const nothing = () => {}
  const openers = {
    async postgresql(n) {
      const { default: pg } = await import('pg')
      const client = new pg.Client({ connectionString: url })
      client.on('error', nothing)
      await client.connect()
      client.connection.stream.once('close', note)
      if (n % 2 === 1) client.query('SELECT pg_sleep(600)').catch(nothing)
      if (n % 10 === 2) return () => {
        client.connection.stream.removeAllListeners('data').on('data', nothing)
        client.connection.query("COPY (SELECT repeat('x', 1000), generate_series(1, 100000000)) TO STDOUT")
      }
    },
    async mysql(n) {
      const { default: mysql } = await import('mysql2')
      const client = mysql.createConnection(url)
      client.on('error', nothing)
      await new Promise((resolve, reject) => client.connect((error) => (error ? reject(error) : resolve())))
      client.stream.once('close', note)
      if (n % 2 === 1) client.query('SELECT SLEEP(600)', nothing)
      if (n % 10 === 2) return () => {
        client.query("SELECT REPEAT('x', 1000) FROM seq_1_to_100000000", nothing)
        client.stream.removeAllListeners('data').on('data', nothing)
      }
    },
    async redis(n) {
      const { connect } = await import('node:net')
      const { port, username, password } = new URL(url)
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', nothing)
      socket.write(['AUTH', username, password].join(' ') + '\\r\\n')
      await new Promise((resolve) => socket.once('data', resolve))
      socket.once('close', note)
      if (n % 2 === 1) socket.write('BLPOP never 0\\r\\n')
      if (n % 10 === 2) return () => {
        const ask = () => socket.write('GET big\\r\\n'.repeat(20))
        let got = 0
        socket.on('data', (bytes) => { for (got += bytes.length; got > 10_000_000; got -= 20_000_000) ask() })
        ask()
      }
    },
  }
  const open = openers[new URL(url).protocol.slice(0, -1)]
  const busy = await Promise.all(Array.from({ length: Number(count) }, (_, n) => open(n)))
  for (const begin of busy) begin?.()
  console.log('ready')
`
