import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What `ssh-keygen -L` says of a certificate, with times in UTC. */
export async function readCertificate(line: string): Promise<string> {
  const child = run('ssh-keygen', ['-L', '-f', '-'], { env: { ...process.env, TZ: 'UTC' } })
  child.child.stdin?.end(`${line}\n`)
  return (await child).stdout
}

/** Epoch ms. */
export async function validBefore(line: string): Promise<number> {
  const [, to] = /Valid: from \S+ to (\S+)/.exec(await readCertificate(line)) ?? []
  return Date.parse(`${to}Z`)
}
