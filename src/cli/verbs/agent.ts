import type { Entry } from '../frame/verb.ts'

/** The verbs that an agent uses for itself. */
export const AGENT_VERBS: readonly Entry[] = [
  {
    name: 'enroll',
    summary: 'enroll as an agent: create a key, request access, wait',
    load: async () => (await import('../commands/enroll.ts')).verb,
  },
  {
    name: 'login',
    summary: 'log in with credentials from an administrator',
    load: async () => (await import('../commands/login.ts')).verb,
  },
  {
    name: 'logout',
    summary: 'remove the login of a profile',
    load: async () => (await import('../commands/logout.ts')).verb,
  },
  {
    name: 'whoami',
    summary: 'show your agent, server and login',
    load: async () => (await import('../commands/whoami.ts')).verb,
  },
  {
    name: 'status',
    summary: 'show your scopes, expiry, credentials and requests',
    load: async () => (await import('../commands/status.ts')).verb,
  },
  {
    name: 'get',
    summary: 'get a credential from a backend',
    load: async () => (await import('../commands/get.ts')).verb,
  },
  {
    name: 'credentials',
    summary: 'list and revoke credentials',
    verbs: [
      {
        name: 'ls',
        summary: 'list your active credentials, or those of all agents',
        load: async () => (await import('../commands/credentials.ts')).list,
      },
      {
        name: 'revoke',
        summary: 'revoke credentials of yours, or of any agent',
        load: async () => (await import('../commands/credentials.ts')).revoke,
      },
    ],
  },
  {
    name: 'revoke',
    summary: 'revoke your credentials before they expire',
    load: async () => (await import('../commands/revoke.ts')).verb,
  },
  {
    name: 'request',
    summary: 'request more scopes',
    load: async () => (await import('../commands/request.ts')).verb,
  },
  {
    name: 'backends',
    summary: 'list the backends',
    load: async () => (await import('../commands/backends.ts')).verb,
  },
  {
    name: 'signing-key',
    summary: 'print the key that signs your commits',
    load: async () => (await import('../commands/signing-key.ts')).verb,
  },
]
