import type { Entry } from '../frame/verb.ts'

/** Names of earlier versions. They keep working; overviews and completion leave them out. */
export const OLD_VERBS: readonly Entry[] = [
  {
    name: 'active',
    summary: 'the old name of `credentials ls`',
    hidden: true,
    load: async () => (await import('../commands/credentials.ts')).active,
  },
  {
    name: 'tokens',
    summary: 'the old name of `credentials`, for administrators',
    hidden: true,
    verbs: [
      {
        name: 'ls',
        summary: 'the old name of `credentials ls --all-agents`',
        load: async () => (await import('../commands/credentials.ts')).tokensList,
      },
      {
        name: 'revoke',
        summary: 'the old name of `credentials revoke`',
        load: async () => (await import('../commands/credentials.ts')).tokensRevoke,
      },
    ],
  },
]
