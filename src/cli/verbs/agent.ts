import type { Entry } from '../frame/verb.ts'

/** What an agent does for itself. */
export const AGENT_VERBS: readonly Entry[] = [
  {
    name: 'enroll',
    summary: 'become an agent: make a key, ask, wait for the approval',
    load: async () => (await import('../commands/enroll.ts')).verb,
  },
  {
    name: 'login',
    summary: 'keep credentials that you were given',
    load: async () => (await import('../commands/login.ts')).verb,
  },
  {
    name: 'logout',
    summary: 'forget the login of a profile',
    load: async () => (await import('../commands/logout.ts')).verb,
  },
  {
    name: 'whoami',
    summary: 'which agent, at which server, by which login',
    load: async () => (await import('../commands/whoami.ts')).verb,
  },
  {
    name: 'status',
    summary: 'scopes, expiry, credentials and requests of the agent',
    load: async () => (await import('../commands/status.ts')).verb,
  },
  {
    name: 'get',
    summary: 'get a credential of a backend',
    load: async () => (await import('../commands/get.ts')).verb,
  },
  {
    name: 'active',
    summary: 'list the credentials that are alive',
    load: async () => (await import('../commands/active.ts')).verb,
  },
  {
    name: 'revoke',
    summary: 'end credentials before their time',
    load: async () => (await import('../commands/revoke.ts')).verb,
  },
  {
    name: 'request',
    summary: 'ask for more scopes',
    load: async () => (await import('../commands/request.ts')).verb,
  },
  {
    name: 'backends',
    summary: 'list the backends',
    load: async () => (await import('../commands/backends.ts')).verb,
  },
  {
    name: 'signing-key',
    summary: 'the key that signs your commits',
    load: async () => (await import('../commands/signing-key.ts')).verb,
  },
]
