import type { Entry } from '../frame/verb.ts'

/** Commands for administrators. */
export const ADMIN_VERBS: readonly Entry[] = [
  {
    name: 'agent',
    summary: 'create, show, change and delete agents',
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
        name: 'update',
        summary: 'change the scopes, expiry, audiences or description of an agent',
        load: async () => (await import('../commands/agent-update.ts')).verb,
      },
      {
        name: 'rotate',
        summary: 'replace the token and client secret of an agent',
        load: async () => (await import('../commands/agent-rotate.ts')).verb,
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
        name: 'rotate-root',
        summary: 'replace the secret that Mayfly logs in with',
        load: async () => (await import('../commands/backend-rotate-root.ts')).verb,
      },
      {
        name: 'reconcile',
        summary: 'find accounts upstream that no credential owns',
        load: async () => (await import('../commands/backend-reconcile.ts')).verb,
      },
      {
        name: 'setup-sql',
        summary: 'print the script that a database needs',
        load: async () => (await import('../../operations/backend-setup.ts')).verb,
      },
    ],
  },
  {
    name: 'kind',
    summary: 'list and show the kinds of backends',
    verbs: [
      {
        name: 'ls',
        summary: 'list the kinds',
        load: async () => (await import('../commands/kind.ts')).list,
      },
      {
        name: 'show',
        summary: 'show a kind and its flags',
        load: async () => (await import('../commands/kind.ts')).show,
      },
    ],
  },
  {
    name: 'plugin',
    summary: 'add, list, reload and remove kinds from outside',
    verbs: [
      {
        name: 'add',
        summary: 'add a kind, or replace it by a newer one',
        load: async () => (await import('../../operations/plugin-add.ts')).verb,
      },
      {
        name: 'new',
        summary: 'make a package for a kind of your own',
        load: async () => (await import('../../operations/plugin-new.ts')).verb,
      },
      {
        name: 'ls',
        summary: 'list the kinds with their versions and origins',
        load: async () => (await import('../../operations/plugin.ts')).list,
      },
      {
        name: 'show',
        summary: 'show what was added, and its hash',
        load: async () => (await import('../../operations/plugin.ts')).show,
      },
      {
        name: 'reload',
        summary: 'start its processes again',
        load: async () => (await import('../../operations/plugin.ts')).reload,
      },
      {
        name: 'rm',
        summary: 'remove a kind that no backend needs',
        load: async () => (await import('../../operations/plugin.ts')).remove,
      },
    ],
  },
  {
    name: 'recipe',
    summary: 'check recipes: files that describe kinds',
    verbs: [
      {
        name: 'check',
        summary: 'check a recipe, and try it',
        load: async () => (await import('../../operations/recipe.ts')).check,
      },
    ],
  },
  {
    name: 'console',
    summary: 'print a link that logs you in to the console',
    load: async () => (await import('../commands/console.ts')).verb,
  },
  {
    name: 'operator',
    summary: 'invite, list, change and remove operators',
    verbs: [
      {
        name: 'ls',
        summary: 'list the operators',
        load: async () => (await import('../commands/operator.ts')).list,
      },
      {
        name: 'invite',
        summary: 'invite an operator',
        load: async () => (await import('../commands/operator.ts')).invite,
      },
      {
        name: 'change',
        summary: 'change the name or scopes of an operator',
        load: async () => (await import('../commands/operator.ts')).change,
      },
      {
        name: 'rm',
        summary: 'remove an operator',
        load: async () => (await import('../commands/operator.ts')).remove,
      },
      {
        name: 'sessions',
        summary: 'list and end sessions of operators',
        load: async () => (await import('../commands/operator-sessions.ts')).verb,
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
        load: async () => (await import('../../operations/policy.ts')).check,
      },
      {
        name: 'explain',
        summary: 'show which policy would decide, and why',
        load: async () => (await import('../../operations/policy.ts')).explain,
      },
    ],
  },
]
