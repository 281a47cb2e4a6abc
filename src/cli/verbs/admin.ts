import { type Entry, entry } from '../frame/verb.ts'

const agent = () => import('../commands/agent.ts')
const backend = () => import('../commands/backend.ts')
const kind = () => import('../commands/kind.ts')
const plugin = () => import('../../operations/plugin.ts')
const keys = () => import('../commands/keys.ts')
const policy = () => import('../../operations/policy.ts')
const operator = () => import('../commands/operator/operator.ts')

/** Commands for administrators. */
export const ADMIN_VERBS: readonly Entry[] = [
  {
    name: 'agent',
    summary: 'create, show, change and delete agents',
    verbs: [
      entry('create', 'create an agent', agent, 'create'),
      entry('ls', 'list the agents', agent, 'list'),
      entry('show', 'show an agent', agent, 'show'),
      entry('update', 'change the scopes, expiry, audiences or description of an agent', agent, 'update'),
      entry('rotate', 'replace the token and client secret of an agent', agent, 'rotate'),
      entry('rm', 'delete an agent', agent, 'remove'),
    ],
  },
  {
    name: 'backend',
    summary: 'add, show, change and delete backends',
    verbs: [
      entry('add', 'configure a backend', backend, 'add'),
      entry('ls', 'list backends with their configuration', backend, 'list'),
      entry('show', 'show a backend', backend, 'show'),
      entry('update', 'change a backend', backend, 'update'),
      entry('rm', 'delete a backend', backend, 'remove'),
      entry(
        'check',
        'log in to the upstream of a backend, or of all',
        () => import('../commands/backend-check.ts'),
      ),
      entry(
        'try',
        'issue a credential that nobody receives, and end it',
        () => import('../commands/backend-try.ts'),
      ),
      entry('rotate-root', 'replace the secret that Mayfly logs in with', backend, 'rotateRoot'),
      entry(
        'reconcile',
        'find accounts upstream that no credential owns',
        () => import('../commands/backend-reconcile.ts'),
      ),
      entry(
        'setup-sql',
        'print the script that a database needs',
        () => import('../../operations/backend-setup.ts'),
      ),
    ],
  },
  {
    name: 'kind',
    summary: 'list and show the kinds of backends',
    verbs: [
      entry('ls', 'list the kinds', kind, 'list'),
      entry('show', 'show a kind and its flags', kind, 'show'),
    ],
  },
  {
    name: 'plugin',
    summary: 'add, list, reload and remove kinds from outside',
    verbs: [
      entry(
        'add',
        'add a kind, or replace it by a newer one',
        () => import('../../operations/plugin-add.ts'),
      ),
      entry('new', 'make a package for a kind of your own', () => import('../../operations/plugin-new.ts')),
      entry('ls', 'list the kinds with their versions and origins', plugin, 'list'),
      entry('show', 'show what was added, and its hash', plugin, 'show'),
      entry('reload', 'start its processes again', plugin, 'reload'),
      entry('rm', 'remove a kind that no backend needs', plugin, 'remove'),
    ],
  },
  {
    name: 'recipe',
    summary: 'check recipes: files that describe kinds',
    verbs: [
      entry('check', 'check a recipe, and try it', () => import('../../operations/recipe.ts'), 'check'),
    ],
  },
  entry(
    'console',
    'print a link that logs you in to the console',
    () => import('../commands/operator/console.ts'),
  ),
  {
    name: 'operator',
    summary: 'invite, list, change and remove operators',
    verbs: [
      entry('ls', 'list the operators', operator, 'list'),
      entry('invite', 'invite an operator', operator, 'invite'),
      entry('change', 'change the name or scopes of an operator', operator, 'change'),
      entry('rm', 'remove an operator', operator, 'remove'),
      entry(
        'sessions',
        'list and end sessions of operators',
        () => import('../commands/operator/sessions.ts'),
      ),
    ],
  },
  entry('pending', 'list pending enrollments and requests', () => import('../commands/pending.ts')),
  entry('approve', 'approve an enrollment or a request', () => import('../commands/approve.ts')),
  entry('reject', 'reject an enrollment or a request', () => import('../commands/reject.ts')),
  {
    name: 'notify',
    summary: 'test the receivers of notifications',
    verbs: [entry('test', 'send a test message to a receiver', () => import('../commands/notify-test.ts'))],
  },
  entry('audit', 'read the audit log', () => import('../commands/audit.ts')),
  {
    name: 'keys',
    summary: 'list and rotate signing keys',
    verbs: [
      entry('ls', 'list the signing keys of agents', keys, 'list'),
      entry('rotate', 'sign access tokens with a new key', keys, 'rotate'),
    ],
  },
  {
    name: 'policy',
    summary: 'check and explain enrollment policies',
    verbs: [
      entry('check', 'check a policy file', policy, 'check'),
      entry('explain', 'show which policy would decide, and why', policy, 'explain'),
    ],
  },
  {
    name: 'identity',
    summary: 'whose tokens workloads log in with',
    verbs: [
      entry('add', 'make an entry for a platform', () => import('../../operations/identity/add.ts')),
      entry('check', 'check the identities of a file', () => import('../../operations/identity/check.ts')),
      entry(
        'test',
        'show which entry takes a token',
        () => import('../../operations/identity/test-token.ts'),
      ),
    ],
  },
]
