import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { run } from './run-program.ts'

const env = { PATH: process.env['PATH'] ?? '' }

/** What the programs of Mosquitto need of a credential. */
export interface Login {
  readonly username: string
  readonly password: string
  readonly host: string
  readonly port: number
  readonly url: string
}

/** MQTT 5 has the broker say whether it took the message. */
export async function publishes(login: Pick<Login, 'url'>, topic: string, ...more: string[]) {
  const url = `${login.url}/${topic}`
  const { code, stderr } = await run(
    ['mosquitto_pub', '-V', '5', '-q', '1', '-m', 'hello', '-L', url, ...more],
    env,
  )
  return code === 0 && stderr === ''
}

export interface Subscription {
  /** Whether the broker took it. */
  readonly granted: Promise<boolean>
  /** All that the program said, once it has ended. */
  readonly ended: Promise<string>
  /** The topic of the first message. */
  readonly first: Promise<string>
  /** Whether another message comes before the end. */
  next(): Promise<boolean>
  close(): void
}

/** A subscription that stays open; `-d` makes the program say what it receives. */
export function subscribe(login: Login, topic: string, ...more: string[]): Subscription {
  const to = ['-h', login.host, '-p', String(login.port), '-u', login.username, '-P', login.password]
  // Into a pipe, it would say nothing before its end.
  const args = ['-oL', 'mosquitto_sub', '-d', '-V', '5', ...to, '-t', topic, ...more]
  const child = spawn('stdbuf', args, { env })
  const lines: string[] = []
  const granted = Promise.withResolvers<boolean>()
  const first = Promise.withResolvers<string>()
  let next = Promise.withResolvers<boolean>()
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (/^Subscribed/.test(line)) granted.resolve(/: [012]$/.test(line))
      const received = /received PUBLISH \(.*'(.*)'/.exec(line)?.[1]
      if (received === undefined) return
      first.resolve(received)
      next.resolve(true)
      next = Promise.withResolvers()
    })
  }
  const ended = once(child, 'close').then(() => {
    granted.resolve(false)
    first.resolve('')
    next.resolve(false)
    return lines.join('\n')
  })
  return {
    ...{ granted: granted.promise, ended, first: first.promise },
    next: () => next.promise,
    close: () => void child.kill('SIGKILL'),
  }
}
