import type { Entry } from '../frame/verb.ts'

/** The server, and what concerns the command itself. */
export const OTHER_VERBS: readonly Entry[] = [
  {
    name: 'server',
    summary: 'run the server',
    load: async () => (await import('../commands/server.ts')).verb,
  },
  {
    name: 'doctor',
    summary: 'say what is wrong, and how to mend it',
    load: async () => (await import('../commands/doctor.ts')).verb,
  },
  {
    name: 'config',
    summary: 'settings of this command',
    verbs: [
      {
        name: 'show',
        summary: 'show the settings and where they come from',
        load: async () => (await import('../commands/config.ts')).show,
      },
    ],
  },
  {
    name: 'completion',
    summary: 'completion for bash, zsh and fish',
    load: async () => (await import('../commands/completion.ts')).verb,
  },
  {
    name: '__complete',
    summary: 'candidates for the completion scripts',
    hidden: true,
    load: async () => (await import('../commands/complete.ts')).verb,
  },
  {
    name: 'version',
    summary: 'versions of command and server',
    load: async () => (await import('../commands/version.ts')).verb,
  },
]
