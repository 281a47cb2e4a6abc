import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface OpensslSpeed {
  /** Signatures per second. */
  readonly perSecond: number
  readonly signMs: number
}

/** Runs `openssl speed` for one algorithm in several processes. Undefined without `openssl`. */
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

/** Parses the machine-readable summary, `+F2:<n>:<bits>:<signatures per second>:…` (`+F4` for ECDSA). */
export function readSpeed(output: string): number | undefined {
  const summary = /^\+F\d:\d+:\d+:([\d.]+):/m.exec(output)
  return summary === null ? undefined : Number(summary[1])
}
