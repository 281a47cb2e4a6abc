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
    const perSecond = readSpeed(stdout, processes > 1)
    return perSecond === undefined ? undefined : { perSecond, signMs: 1_000 / perSecond }
  } catch {
    return undefined
  }
}

/**
 * The lines for machines. One process: `+R1:<signatures>:<bits>:<seconds>` (`+R5` for ECDSA). Several: the summary
 * `+F2:<n>:<bits>:<seconds per signature>:…`, already divided among them (`+F4` for ECDSA, `+F3` in newer ones).
 */
export function readSpeed(output: string, several: boolean): number | undefined {
  if (several) {
    const summary = /^\+F[234]:\d+:\d+:([\d.e-]+):/m.exec(output)
    return summary === null ? undefined : 1 / Number(summary[1])
  }
  const counted = /^\+R[135]:(\d+):\d+:([\d.]+)/m.exec(output)
  return counted === null ? undefined : Number(counted[1]) / Number(counted[2])
}
