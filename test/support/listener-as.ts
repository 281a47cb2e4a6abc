import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** The account of nobody on every Linux. */
export const NOBODY = 65_534

export interface ForeignListener extends AsyncDisposable {
  readonly port: number
  /** Everything that it was sent. */
  received(): string
  /** Resolves once everything that was sent to it is in `received`. */
  settled(): Promise<void>
}

/**
 * A process of another user that listens on a loopback address, greets with `greeting`, and keeps what it is sent. `answer` is
 * what it sends back for each piece.
 */
export async function listenAs(uid: number, { greeting = '', answer = '' } = {}): Promise<ForeignListener> {
  const program = `
    const [greeting, answer] = ${JSON.stringify([greeting, answer])}.map((text) => Buffer.from(text, 'latin1'))
    const server = require('node:net').createServer((socket) => {
      socket.on('error', () => {})
      if (greeting.length > 0) socket.write(greeting)
      socket.on('data', (piece) => {
        console.log(piece.toString('hex'))
        if (answer.length > 0) socket.write(answer)
      })
    })
    process.on('SIGUSR2', () => console.log('settled'))
    server.listen(0, '127.0.0.1', () => console.log(server.address().port))`
  const child = spawn(process.execPath, ['-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: '/',
    uid,
    gid: uid,
  })
  const lines = createInterface({ input: child.stdout })
  const [port] = (await once(lines, 'line')) as [string]
  const pieces: Buffer[] = []
  lines.on('line', (line) => {
    if (line !== 'settled') pieces.push(Buffer.from(line, 'hex'))
  })
  return {
    port: Number(port),
    received: () => Buffer.concat(pieces).toString('latin1'),
    async settled() {
      child.kill('SIGUSR2')
      for (let line = ''; line !== 'settled'; [line] = (await once(lines, 'line')) as [string]);
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await once(child, 'exit')
    },
  }
}
