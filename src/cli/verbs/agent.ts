import { type Entry, entry } from '../frame/verb.ts'

const profile = () => import('../commands/profile.ts')
const status = () => import('../commands/status.ts')
const credentials = () => import('../commands/credentials.ts')

/** The verbs that an agent uses for itself. */
export const AGENT_VERBS: readonly Entry[] = [
  entry(
    'enroll',
    'enroll as an agent: create a key, request access, wait',
    () => import('../commands/enroll.ts'),
  ),
  entry('login', 'log in with credentials from an administrator', () => import('../commands/login.ts')),
  entry('logout', 'remove the login of a profile', () => import('../commands/logout.ts')),
  {
    name: 'profile',
    summary: 'list, show, choose and remove logins',
    verbs: [
      entry('ls', 'list the logins on this machine', profile, 'list'),
      entry('show', 'show a login', profile, 'show'),
      entry('use', 'choose the login that commands use', profile, 'use'),
      entry('rm', 'remove a login', profile, 'remove'),
    ],
  },
  entry('whoami', 'show your agent, server and login', status, 'whoami'),
  entry('status', 'show your scopes, expiry, credentials and requests', status, 'status'),
  entry('get', 'get a credential from a backend', () => import('../commands/get.ts')),
  {
    name: 'credentials',
    summary: 'list and revoke credentials',
    verbs: [
      entry('ls', 'list your active credentials, or those of all agents', credentials, 'list'),
      entry('revoke', 'revoke credentials of yours, or of any agent', credentials, 'revoke'),
    ],
  },
  entry('revoke', 'revoke your credentials before they expire', () => import('../commands/revoke.ts')),
  entry('request', 'request more scopes', () => import('../commands/request.ts')),
  entry('backends', 'list the backends', () => import('../commands/backends.ts')),
  entry('signing-key', 'print the key that signs your commits', () => import('../commands/signing-key.ts')),
]
