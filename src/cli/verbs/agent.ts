import { type Entry, entry } from '../frame/verb.ts'

const profile = () => import('../commands/profile.ts')
const credentials = () => import('../commands/credentials.ts')
const runs = () => import('../commands/runs.ts')

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
  entry(
    'status',
    'show your agent, login, scopes, credentials and requests',
    () => import('../commands/status.ts'),
  ),
  entry('get', 'get a credential from a backend', () => import('../commands/get.ts')),
  {
    name: 'credentials',
    summary: 'list credentials',
    verbs: [entry('ls', 'list your active credentials, or those of all agents', credentials, 'list')],
  },
  entry('revoke', 'revoke credentials before they expire', () => import('../commands/revoke.ts')),
  {
    name: 'runs',
    summary: 'list, show and end runs, with which credentials end',
    verbs: [
      entry('ls', 'list your runs that live, or those of all agents', runs, 'list'),
      entry('show', 'show a run', runs, 'show'),
      entry('requests', 'list the requests of a run, as its proxy tells them', runs, 'requests'),
      entry('end', 'end runs with all their credentials', runs, 'end'),
    ],
  },
  entry('request', 'request more scopes', () => import('../commands/request.ts')),
  entry('backends', 'list the backends', () => import('../commands/backends.ts')),
  entry('signing-key', 'print the key that signs your commits', () => import('../commands/signing-key.ts')),
]
