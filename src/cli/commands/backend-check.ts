import type { CheckedBackend } from '../../client/wire.ts'
import { healthInShort } from '../admin/describe-health.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { EXIT, usage } from '../frame/failure.ts'
import { flag } from '../frame/options.ts'
import { table } from '../frame/output.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { openAdminClient } from '../session/admin.ts'

type Admin = Awaited<ReturnType<typeof openAdminClient>>['admin']

/** So many are checked at once. */
const AT_ONCE = 8

export const verb = defineVerb({
  description:
    'Logs in to the upstream of a backend, makes the first call of issuing that changes nothing, and shows whether it is up. Works also while the server has given up on that upstream for a while, and ends that when it is up again. Ends with 1 if a backend is not up.',
  arguments: [{ name: '[name]', description: 'the backend', values: 'backends' }],
  options: { all: flag('check all backends') },
  examples: {
    'mayfly backend check orders': 'one backend',
    'mayfly backend check --all': 'all of them, eight at once',
  },
  json: arrayOf(async () => (await import('../../api/admin-backends.ts')).CheckedBackend),
  ...ADMIN,
  run: async (context, { all = false }, name) => {
    if (all === (name !== undefined))
      throw usage('Name one backend, or use --all.', 'Run: mayfly backend check --help')
    const { admin } = await openAdminClient(context)
    const names = name === undefined ? await readNames(context, admin) : [name]
    const checked = await checkEach(context, admin, names)
    await context.out.show(checked, () => describe(checked))
    return checked.every(({ health }) => health.state === 'up') ? EXIT.done : EXIT.failed
  },
})

/** Those that are being deleted are not asked for. */
async function readNames(context: Context, admin: Admin): Promise<string[]> {
  const names: string[] = []
  for await (const { name, deletion } of admin.backends.list({ signal: context.signal }))
    if (deletion === undefined) names.push(name)
  return names
}

/** In the order of the names. One that was deleted meanwhile is left out. */
async function checkEach(
  context: Context,
  admin: Admin,
  names: readonly string[],
): Promise<CheckedBackend[]> {
  const results = new Array<CheckedBackend | undefined>(names.length)
  const rest = names.entries()
  let done = 0
  const work = async () => {
    for (const [place, name] of rest) {
      results[place] = await checkOne(context, admin, name, names.length > 1)
      done += 1
      if (names.length > 1) context.out.progress(`${done} of ${names.length} backends checked`)
    }
  }
  const what = names.length === 1 ? `Checking ${names[0]}` : `Checking ${names.length} backends`
  await whileWaiting(context, what, Promise.all(Array.from({ length: AT_ONCE }, work)))
  return results.filter((one) => one !== undefined)
}

async function checkOne(context: Context, admin: Admin, name: string, isOneOfMany: boolean) {
  try {
    return await admin.backends.check(name, { signal: context.signal })
  } catch (error) {
    if (isOneOfMany && (error as { code?: unknown }).code === 'backend_not_found') return undefined
    throw error
  }
}

function describe(checked: readonly CheckedBackend[]): string {
  if (checked.length === 0) return 'No backends.'
  return table(
    ['BACKEND', 'HEALTH', 'DETAIL'],
    checked.map(({ name, health, warnings }) => [
      name,
      healthInShort(health),
      (health.state === 'down' ? health.last_failure_detail : warnings?.join(' ')) ?? '',
    ]),
  )
}
