import type { Entry } from '../frame/verb.ts'

/** The server, and commands about this command. */
export const OTHER_VERBS: readonly Entry[] = [
  {
    name: 'server',
    summary: 'run the server',
    load: async () => (await import('../../operations/server.ts')).verb,
  },
  {
    name: 'init',
    summary: 'set up a server: configuration and master key',
    load: async () => (await import('../../operations/init.ts')).verb,
  },
  {
    name: 'backup',
    summary: 'copy the store of the server on this machine',
    load: async () => (await import('../../operations/backup.ts')).verb,
  },
  {
    name: 'restore',
    summary: 'put a backup into an empty data directory',
    load: async () => (await import('../../operations/restore.ts')).verb,
  },
  {
    name: 'doctor',
    summary: 'find problems and say how to fix them',
    load: async () => (await import('../../operations/doctor.ts')).verb,
  },
  {
    name: 'config',
    summary: 'show settings',
    verbs: [
      {
        name: 'show',
        summary: 'show settings and where they come from',
        load: async () => (await import('../../operations/config.ts')).show,
      },
    ],
  },
  {
    name: 'completion',
    summary: 'complete commands, options and names in bash, zsh or fish',
    verbs: [
      {
        name: 'install',
        summary: 'set it up for your shell',
        load: async () => (await import('../commands/completion.ts')).install,
      },
      {
        name: 'bash',
        summary: 'print the script for bash',
        load: async () => (await import('../commands/completion.ts')).bash,
      },
      {
        name: 'zsh',
        summary: 'print the script for zsh',
        load: async () => (await import('../commands/completion.ts')).zsh,
      },
      {
        name: 'fish',
        summary: 'print the script for fish',
        load: async () => (await import('../commands/completion.ts')).fish,
      },
    ],
  },
  {
    name: '__complete',
    summary: 'candidates for the completion scripts',
    hidden: true,
    load: async () => (await import('../commands/complete.ts')).verb,
  },
  {
    name: 'version',
    summary: 'print the versions of command and server',
    load: async () => (await import('../commands/version.ts')).verb,
  },
]
