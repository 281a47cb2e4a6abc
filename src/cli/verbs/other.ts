import type { Entry } from '../frame/verb.ts'

/** The server, and what concerns the command itself. */
export const OTHER_VERBS: readonly Entry[] = [
  {
    name: 'server',
    summary: 'run the server',
    group: 'other',
    load: async () => (await import('../commands/server.ts')).verb,
  },
  {
    name: 'doctor',
    summary: 'say what is wrong, and how to mend it',
    group: 'other',
    load: async () => (await import('../commands/doctor.ts')).verb,
  },
  {
    name: 'config',
    summary: 'settings of this command',
    group: 'other',
    verbs: [
      {
        name: 'show',
        summary: 'show the settings and where they come from',
        group: 'other',
        load: async () => (await import('../commands/config.ts')).show,
      },
    ],
  },
  {
    name: 'completion',
    summary: 'completion for bash, zsh and fish',
    group: 'other',
    load: async () => (await import('../commands/completion.ts')).verb,
  },
  {
    name: 'version',
    summary: 'versions of command and server',
    group: 'other',
    load: async () => (await import('../commands/version.ts')).verb,
  },
]
