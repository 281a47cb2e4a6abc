import { execFileSync, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'

const SCRIPT = fileURLToPath(new URL('smtp-server.py', import.meta.url))
/** Debian's own, for which `python3-aiosmtpd` is. */
const PYTHON = '/usr/bin/python3'

export const hasSmtpServer = (() => {
  try {
    execFileSync(PYTHON, ['-c', 'import aiosmtpd'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

export interface Mail {
  readonly from: string
  readonly to: readonly string[]
  /** Headers and body. */
  readonly data: string
  readonly user: string | null
}

export interface SmtpServer {
  readonly port: number
  readonly mails: readonly Mail[]
  stop(): Promise<void>
}

/** A real mail server on 127.0.0.1. With `tls` it requires a login: `right secret` is everybody's password. */
export async function startSmtpServer(tls?: {
  readonly mode: 'starttls' | 'implicit'
  readonly cert: string
  readonly key: string
}): Promise<SmtpServer> {
  const port = await freePort()
  const args = tls === undefined ? [] : [tls.mode, tls.cert, tls.key]
  const child = spawn(PYTHON, [SCRIPT, String(port), ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const errors: string[] = []
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const mails: Mail[] = []
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line === 'ready') resolve()
      else mails.push(JSON.parse(line) as Mail)
    })
    child.once('exit', () => reject(new Error(`the mail server ended: ${errors.join('')}`)))
  })
  return {
    port,
    mails,
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
