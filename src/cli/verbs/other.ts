import { type Entry, entry, hidden } from '../frame/verb.ts'

const backup = () => import('../../operations/backup.ts')
const completion = () => import('../commands/completion.ts')

/** The server, and commands about this command. */
export const OTHER_VERBS: readonly Entry[] = [
  {
    ...entry('server', 'run the server', () => import('../../operations/server.ts')),
    inner: [
      entry(
        'reload',
        'make it read its configuration again',
        () => import('../../operations/server-reload.ts'),
      ),
    ],
  },
  entry('init', 'set up a server: configuration and master key', () => import('../../operations/init.ts')),
  entry('backup', 'copy the store of the server on this machine', backup, 'backup'),
  entry('restore', 'put a backup into an empty data directory', backup, 'restore'),
  entry('doctor', 'find problems and say how to fix them', () => import('../../operations/doctor.ts')),
  {
    name: 'config',
    summary: 'show settings',
    verbs: [
      entry(
        'show',
        'show settings and where they come from',
        () => import('../../operations/config.ts'),
        'show',
      ),
    ],
  },
  {
    name: 'completion',
    summary: 'complete commands, options and names in bash, zsh or fish',
    verbs: [
      entry('install', 'set it up for your shell', completion, 'install'),
      entry('bash', 'print the script for bash', completion, 'bash'),
      entry('zsh', 'print the script for zsh', completion, 'zsh'),
      entry('fish', 'print the script for fish', completion, 'fish'),
    ],
  },
  hidden(
    entry('__complete', 'candidates for the completion scripts', () => import('../commands/complete.ts')),
  ),
]
