import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../support/run-program.ts'

/** A bare Debian in a directory, without Node.js, as a computer of its own would have it. */
export interface FreshRoot {
  readonly directory: string
  /** The words that run a command inside it, by default as root. */
  words(command: readonly string[], user?: string): readonly string[]
  /** Runs it there. */
  run(command: readonly string[], given?: Given): ReturnType<typeof run>
  remove(): void
}

interface Given {
  readonly user?: string
  readonly env?: Readonly<Record<string, string>>
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Makes one like the Debian that this runs on, with debootstrap, from the mirror that apt uses here. */
export function makeFreshRoot(directory: string): FreshRoot {
  const { suite, mirror } = aptSource()
  execFileSync('debootstrap', ['--variant=minbase', suite, directory, mirror], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  // The command reads there which user listens on a port.
  execFileSync('mount', ['-t', 'proc', 'proc', join(directory, 'proc')])
  const words = (command: readonly string[], user = 'root') => [
    'chroot',
    `--userspec=${user}`,
    directory,
    ...command,
  ]
  return {
    directory,
    words,
    run: (command, { user, env = {} } = {}) => run(words(command, user), { PATH, HOME: '/root', ...env }),
    remove: () => {
      spawnSync('umount', [join(directory, 'proc')])
      execFileSync('rm', ['-rf', '--one-file-system', directory])
    },
  }
}

function aptSource(): { suite: string; mirror: string } {
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? ''
  const format = ['--format', '$(SUITE) $(CODENAME) $(REPO_URI)', 'Created-By: Packages']
  const lines = execFileSync('apt-get', ['indextargets', ...format], { encoding: 'utf8' }).split('\n')
  const mirror = lines.map((line) => line.split(' ')).find(([, codename]) => codename === suite)?.[2]
  if (mirror === undefined) throw new Error(`apt knows no mirror of ${suite}; run apt-get update`)
  return { suite, mirror }
}
