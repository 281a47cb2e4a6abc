import type { Entry } from '../frame/verb.ts'

/** What an agent does for itself. */
export const AGENT_VERBS: readonly Entry[] = [
  {
    name: 'enroll',
    summary: 'become an agent: make a key, ask, wait for the approval',
    group: 'agent',
    load: async () => (await import('../commands/enroll.ts')).verb,
  },
  {
    name: 'login',
    summary: 'keep credentials that you were given',
    group: 'agent',
    load: async () => (await import('../commands/login.ts')).verb,
  },
  {
    name: 'logout',
    summary: 'forget the login of a profile',
    group: 'agent',
    load: async () => (await import('../commands/logout.ts')).verb,
  },
  {
    name: 'whoami',
    summary: 'which agent, at which server, by which login',
    group: 'agent',
    load: async () => (await import('../commands/whoami.ts')).verb,
  },
  {
    name: 'status',
    summary: 'scopes, expiry, credentials and requests of the agent',
    group: 'agent',
    load: async () => (await import('../commands/status.ts')).verb,
  },
  {
    name: 'get',
    summary: 'get a credential of a backend',
    group: 'agent',
    load: async () => (await import('../commands/get.ts')).verb,
  },
  {
    name: 'active',
    summary: 'list the credentials that are alive',
    group: 'agent',
    load: async () => (await import('../commands/active.ts')).verb,
  },
  {
    name: 'revoke',
    summary: 'end credentials before their time',
    group: 'agent',
    load: async () => (await import('../commands/revoke.ts')).verb,
  },
  {
    name: 'request',
    summary: 'ask for more scopes',
    group: 'agent',
    load: async () => (await import('../commands/request.ts')).verb,
  },
  {
    name: 'backends',
    summary: 'list the backends',
    group: 'agent',
    load: async () => (await import('../commands/backends.ts')).verb,
  },
  {
    name: 'signing-key',
    summary: 'the key that signs your commits',
    group: 'agent',
    load: async () => (await import('../commands/signing-key.ts')).verb,
  },
]
