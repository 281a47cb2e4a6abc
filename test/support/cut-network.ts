import { execFileSync } from 'node:child_process'
import { hasPrograms } from './needed-programs.ts'

/** A network of one machine, tied to this one by a cable. */
export interface CutNetwork {
  /** Of this machine, on the cable. */
  readonly address: string
  /** Starts a program on that machine. */
  readonly by: readonly string[]
  /** Pulls the cable: packets are lost, and nobody is told. */
  cut(): void
  mend(): void
  close(): void
}

const isRootOnLinux = process.platform === 'linux' && process.getuid?.() === 0
export const CAN_CUT = isRootOnLinux && hasPrograms('ip', 'nsenter')

/** A network namespace with a pair of virtual devices. Its addresses are those that RFC 2544 sets aside for measurements. */
export function openCutNetwork(): CutNetwork {
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const { pid } = process
  const [name, here, there] = [`mayfly-${pid}`, `mf${pid}a`, `mf${pid}b`]
  const net = `198.18.${pid % 256}`
  const close = () => {
    // The namespace takes both devices with it, once nobody is in it any more.
    for (const words of [
      ['link', 'del', here],
      ['netns', 'del', name],
    ])
      try {
        ip(...words)
      } catch {}
  }
  process.once('exit', close)
  ip('netns', 'add', name)
  ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name)
  ip('addr', 'add', `${net}.1/30`, 'dev', here)
  ip('link', 'set', here, 'up')
  const inside = (...args: string[]) => void ip('-n', name, ...args)
  inside('addr', 'add', `${net}.2/30`, 'dev', there)
  inside('link', 'set', 'lo', 'up')
  inside('link', 'set', there, 'up')
  return {
    address: `${net}.1`,
    by: ['nsenter', `--net=/run/netns/${name}`],
    cut: () => inside('link', 'set', there, 'down'),
    mend: () => inside('link', 'set', there, 'up'),
    close: () => {
      process.off('exit', close)
      close()
    },
  }
}
