import type { Entry } from '../frame/verb.ts'

/** What an administrator does. */
export const ADMIN_VERBS: readonly Entry[] = [
  {
    name: 'agent',
    summary: 'agents: create, look at, delete',
    group: 'admin',
    verbs: [
      {
        name: 'create',
        summary: 'create an agent',
        group: 'admin',
        load: async () => (await import('../commands/agent.ts')).create,
      },
      {
        name: 'ls',
        summary: 'list the agents',
        group: 'admin',
        load: async () => (await import('../commands/agent.ts')).list,
      },
      {
        name: 'show',
        summary: 'show an agent',
        group: 'admin',
        load: async () => (await import('../commands/agent.ts')).show,
      },
      {
        name: 'rm',
        summary: 'delete an agent',
        group: 'admin',
        load: async () => (await import('../commands/agent.ts')).remove,
      },
    ],
  },
  {
    name: 'backend',
    summary: 'backends: add, look at, change, delete',
    group: 'admin',
    verbs: [
      {
        name: 'add',
        summary: 'configure a backend',
        group: 'admin',
        load: async () => (await import('../commands/backend-add.ts')).verb,
      },
      {
        name: 'ls',
        summary: 'list the backends with their configuration',
        group: 'admin',
        load: async () => (await import('../commands/backend.ts')).list,
      },
      {
        name: 'show',
        summary: 'show a backend',
        group: 'admin',
        load: async () => (await import('../commands/backend.ts')).show,
      },
      {
        name: 'update',
        summary: 'change a backend',
        group: 'admin',
        load: async () => (await import('../commands/backend-update.ts')).verb,
      },
      {
        name: 'rm',
        summary: 'delete a backend',
        group: 'admin',
        load: async () => (await import('../commands/backend.ts')).remove,
      },
      {
        name: 'kinds',
        summary: 'list the kinds of backend',
        group: 'admin',
        load: async () => (await import('../commands/backend.ts')).kinds,
      },
    ],
  },
  {
    name: 'pending',
    summary: 'list what waits for a decision',
    group: 'admin',
    load: async () => (await import('../commands/pending.ts')).verb,
  },
  {
    name: 'approve',
    summary: 'approve an enrollment or a request',
    group: 'admin',
    load: async () => (await import('../commands/approve.ts')).verb,
  },
  {
    name: 'reject',
    summary: 'reject an enrollment or a request',
    group: 'admin',
    load: async () => (await import('../commands/reject.ts')).verb,
  },
  {
    name: 'tokens',
    summary: 'credentials of all agents',
    group: 'admin',
    verbs: [
      {
        name: 'ls',
        summary: 'list credentials',
        group: 'admin',
        load: async () => (await import('../commands/tokens.ts')).list,
      },
      {
        name: 'revoke',
        summary: 'revoke a credential of any agent',
        group: 'admin',
        load: async () => (await import('../commands/tokens.ts')).revoke,
      },
    ],
  },
  {
    name: 'audit',
    summary: 'read the audit',
    group: 'admin',
    load: async () => (await import('../commands/audit.ts')).verb,
  },
  {
    name: 'keys',
    summary: 'signing keys',
    group: 'admin',
    verbs: [
      {
        name: 'ls',
        summary: 'list the signing keys of all agents',
        group: 'admin',
        load: async () => (await import('../commands/keys.ts')).list,
      },
      {
        name: 'rotate',
        summary: 'sign tokens with a new key',
        group: 'admin',
        load: async () => (await import('../commands/keys.ts')).rotate,
      },
    ],
  },
  {
    name: 'policy',
    summary: 'policies of enrollment',
    group: 'admin',
    verbs: [
      {
        name: 'check',
        summary: 'check a policy file',
        group: 'admin',
        load: async () => (await import('../commands/policy.ts')).check,
      },
      {
        name: 'explain',
        summary: 'say which policy would decide, and why',
        group: 'admin',
        load: async () => (await import('../commands/policy.ts')).explain,
      },
    ],
  },
  {
    name: 'plugin',
    summary: 'kinds of backend that are loaded',
    group: 'admin',
    verbs: [
      {
        name: 'ls',
        summary: 'list them',
        group: 'admin',
        load: async () => (await import('../commands/plugin.ts')).list,
      },
      {
        name: 'reload',
        summary: 'open their backends anew',
        group: 'admin',
        load: async () => (await import('../commands/plugin.ts')).reload,
      },
    ],
  },
]
