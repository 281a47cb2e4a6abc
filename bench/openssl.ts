import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface OpensslSpeed {
  /** Signatures a second. */
  readonly perSecond: number
  readonly signMs: number
}

/** `openssl speed` of one algorithm, in so many processes at once. Undefined where there is no `openssl`. */
export async function measureOpenssl(
  algorithm: 'rsa2048' | 'ecdsap256',
  processes: number,
  seconds = 2,
): Promise<OpensslSpeed | undefined> {
  const multi = processes > 1 ? ['-multi', String(processes)] : []
  try {
    const { stdout } = await run('openssl', [
      'speed',
      '-seconds',
      String(seconds),
      '-mr',
      ...multi,
      algorithm,
    ])
    const perSecond = readSpeed(stdout)
    return perSecond === undefined ? undefined : { perSecond, signMs: 1_000 / perSecond }
  } catch {
    return undefined
  }
}

/** The summary line for machines, `+F2:<n>:<bits>:<signatures a second>:…` (`+F4` for ECDSA). */
export function readSpeed(output: string): number | undefined {
  const summary = /^\+F\d:\d+:\d+:([\d.]+):/m.exec(output)
  return summary === null ? undefined : Number(summary[1])
}
