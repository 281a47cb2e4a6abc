import type { Entry } from '../frame/verb.ts'

/** Commands for administrators. */
export const ADMIN_VERBS: readonly Entry[] = [
  {
    name: 'agent',
    summary: 'create, show and delete agents',
    verbs: [
      {
        name: 'create',
        summary: 'create an agent',
        load: async () => (await import('../commands/agent.ts')).create,
      },
      {
        name: 'ls',
        summary: 'list the agents',
        load: async () => (await import('../commands/agent.ts')).list,
      },
      {
        name: 'show',
        summary: 'show an agent',
        load: async () => (await import('../commands/agent.ts')).show,
      },
      {
        name: 'rm',
        summary: 'delete an agent',
        load: async () => (await import('../commands/agent.ts')).remove,
      },
    ],
  },
  {
    name: 'backend',
    summary: 'add, show, change and delete backends',
    verbs: [
      {
        name: 'add',
        summary: 'configure a backend',
        load: async () => (await import('../commands/backend-add.ts')).verb,
      },
      {
        name: 'ls',
        summary: 'list backends with their configuration',
        load: async () => (await import('../commands/backend.ts')).list,
      },
      {
        name: 'show',
        summary: 'show a backend',
        load: async () => (await import('../commands/backend.ts')).show,
      },
      {
        name: 'update',
        summary: 'change a backend',
        load: async () => (await import('../commands/backend-update.ts')).verb,
      },
      {
        name: 'rm',
        summary: 'delete a backend',
        load: async () => (await import('../commands/backend.ts')).remove,
      },
      {
        name: 'setup-sql',
        summary: 'print the script that a database needs',
        load: async () => (await import('../commands/backend-setup.ts')).verb,
      },
      {
        name: 'kinds',
        summary: 'list the kinds of backends',
        load: async () => (await import('../commands/backend.ts')).kinds,
      },
    ],
  },
  {
    name: 'pending',
    summary: 'list pending enrollments and requests',
    load: async () => (await import('../commands/pending.ts')).verb,
  },
  {
    name: 'approve',
    summary: 'approve an enrollment or a request',
    load: async () => (await import('../commands/approve.ts')).verb,
  },
  {
    name: 'reject',
    summary: 'reject an enrollment or a request',
    load: async () => (await import('../commands/reject.ts')).verb,
  },
  {
    name: 'tokens',
    summary: 'list and revoke credentials of all agents',
    verbs: [
      {
        name: 'ls',
        summary: 'list credentials',
        load: async () => (await import('../commands/tokens.ts')).list,
      },
      {
        name: 'revoke',
        summary: 'revoke a credential of any agent',
        load: async () => (await import('../commands/tokens.ts')).revoke,
      },
    ],
  },
  {
    name: 'audit',
    summary: 'read the audit log',
    load: async () => (await import('../commands/audit.ts')).verb,
  },
  {
    name: 'keys',
    summary: 'list and rotate signing keys',
    verbs: [
      {
        name: 'ls',
        summary: 'list the signing keys of agents',
        load: async () => (await import('../commands/keys.ts')).list,
      },
      {
        name: 'rotate',
        summary: 'sign access tokens with a new key',
        load: async () => (await import('../commands/keys.ts')).rotate,
      },
    ],
  },
  {
    name: 'policy',
    summary: 'check and explain enrollment policies',
    verbs: [
      {
        name: 'check',
        summary: 'check a policy file',
        load: async () => (await import('../commands/policy.ts')).check,
      },
      {
        name: 'explain',
        summary: 'show which policy would decide, and why',
        load: async () => (await import('../commands/policy.ts')).explain,
      },
    ],
  },
  {
    name: 'plugin',
    summary: 'list and reload the loaded kinds of backends',
    verbs: [
      {
        name: 'ls',
        summary: 'list the loaded kinds',
        load: async () => (await import('../commands/plugin.ts')).list,
      },
      {
        name: 'reload',
        summary: 'reopen their backends',
        load: async () => (await import('../commands/plugin.ts')).reload,
      },
    ],
  },
]
