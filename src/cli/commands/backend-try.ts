import type { TriedBackend } from '../../client/wire.ts'
import { ADMIN } from '../admin/verbs.ts'
import { EXIT } from '../frame/failure.ts'
import { many } from '../frame/options.ts'
import { table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
  description:
    'Tries a backend from end to end: logs in to its upstream, issues a credential of one minute (or the shortest time of its kind) that nobody receives, and ends it where the kind can. Shows each step, how long it took, and why it failed. Ends with 1 if a step fails.',
  arguments: [{ name: '<name>', description: 'the backend', values: 'backends' }],
  options: {
    scope: many(
      '<scope>',
      'what to ask for, relative to the backend; by default the first example of its kind that it may issue',
    ),
  },
  examples: {
    'mayfly backend try orders': 'does it work?',
    'mayfly backend try orders --scope orders:read': 'with a scope of your own',
  },
  json: async () => (await import('../../api/admin-backends.ts')).TriedBackend,
  ...ADMIN,
  run: async (context, { scope: scopes }, name) => {
    const { admin } = await openAdminClient(context)
    const trial = admin.backends.try(name, { scopes }, { signal: context.signal })
    const tried = await whileWaiting(context, `Trying ${name}`, trial)
    await context.out.show(tried, () => describe(tried))
    if (!context.out.isJson && tried.note !== undefined) context.out.note(tried.note)
    return tried.steps.some(({ error }) => error !== undefined) ? EXIT.failed : EXIT.done
  },
})

function describe({ steps, warnings }: TriedBackend): string {
  return table(
    ['STEP', 'RESULT', 'TIME', 'DETAIL'],
    steps.map(({ name, ms, error, detail }) => [
      name,
      error ?? 'ok',
      `${ms} ms`,
      detail ?? (name === 'check' ? (warnings?.join(' ') ?? '') : ''),
    ]),
  )
}
