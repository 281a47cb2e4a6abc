import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const alive = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of alive) child.kill()
})

export interface Eavesdropper {
  /** Its port; 0 for a socket file. */
  readonly port: number
  /** Ends it; resolves to everything that was sent to it. */
  end(): Promise<string>
}

/** A process of another user that listens on `host`, or on the socket file `path`, and answers every request with 401. */
export async function eavesdropAs(
  uid: number,
  where: { readonly host: string; readonly port?: number } | { readonly path: string },
): Promise<Eavesdropper> {
  const program = `
    const where = JSON.parse(process.argv[1])
    require('node:net').createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        process.stdout.write(JSON.stringify(bytes.toString('latin1')) + '\\n')
        socket.end('HTTP/1.1 401 Unauthorized\\r\\nContent-Length: 2\\r\\n\\r\\n{}')
      })
    }).listen(where, function () { process.stdout.write((this.address().port ?? 0) + '\\n') })`
  const child = spawn(
    process.execPath,
    ['-e', program, JSON.stringify('path' in where ? where : { port: 0, ...where })],
    {
      uid,
      gid: uid,
      cwd: '/',
      env: {},
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  alive.add(child)
  child.once('exit', () => alive.delete(child))
  const lines = createInterface({ input: child.stdout })
  const closed = once(lines, 'close')
  const [port] = (await once(lines, 'line')) as [string]
  const heard: string[] = []
  lines.on('line', (line) => heard.push(JSON.parse(line)))
  return {
    port: Number(port),
    end: async () => {
      child.kill()
      await closed
      return heard.join('')
    },
  }
}
