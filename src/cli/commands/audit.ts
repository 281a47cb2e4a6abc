import type { AuditEntry } from '../../client/wire.ts'
import { followEntries, readEntries } from '../admin/audit-entries.ts'
import { requireKnown } from '../admin/require-known.ts'
import { ADMIN, FILTERS } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { flag, text, type ValuesOf } from '../frame/options.ts'
import { paged } from '../frame/paged.ts'
import { oneLine } from '../frame/terminal-text.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

const OPTIONS = {
  ...FILTERS,
  actor: text('<name>', 'only actions of this agent, of operator:EMAIL, of `local` or of `system`'),
  action: text('<action>', 'only this action, such as credential.issued'),
  credential: text('<id>', 'only this credential'),
  run: text('<id>', 'only this run, and what was issued for it', { values: 'runs' }),
  since: text('<time>', 'from this time on: 2026-01-31T12:00:00Z, or 1h for an hour ago'),
  until: text('<time>', 'up to this time'),
  limit: text('<number>', 'at most this many; 50 by default', { short: 'n' }),
  all: flag('all entries'),
  follow: flag('print new entries until Ctrl-C', 'f'),
}

type Options = ValuesOf<typeof OPTIONS>

const LIMIT = 50
/** Actors that are no agents. */
const isNoAgent = (actor: string) => ['local', 'system'].includes(actor) || actor.startsWith('operator:')

export const verb = defineVerb({
  description:
    'Prints the newest audit entries that match, newest last. With --json, prints one object per line. With `verify-confirmation`, checks one entry: the signature of the passkey over the exact request, and that the audit has this passkey as one of that operator.',
  arguments: [
    {
      name: '[verify-confirmation]',
      description: 'check that an operator confirmed what an entry records, with a passkey',
      choices: ['verify-confirmation'],
    },
    { name: '[entry]', description: 'the entry to check: aud_…' },
  ],
  options: OPTIONS,
  examples: {
    'mayfly audit --since 1h': 'the last hour',
    'mayfly audit --follow --agent ci-42': 'watch an agent',
    'mayfly audit --all --run run_01…': 'what happened in a run',
    'mayfly audit --actor alice --since 1d': 'everything an administrator did',
    'mayfly audit verify-confirmation aud_06dzq5t9w3k7n1c6v4x8m2p0hd': 'who confirmed this, and what exactly',
    'mayfly audit --all --json --action credential.issued':
      'every issued credential, one JSON object per line',
  },
  json: async () => {
    const { AuditEntry } = await import('../../api/api-v1.ts')
    return { ...AuditEntry, description: 'one object per line' }
  },
  ...ADMIN,
  run: async (context, options, verify, id) => {
    if (verify !== undefined) return (await import('../admin/confirmed-entry.ts')).verifyEntry(context, id)
    const limit = limitOf(options)
    const { backend, agent, actor, action, credential, run, since, until } = options
    if (options.follow === true && until !== undefined)
      throw usage('--follow and --until exclude each other.')
    await checkAction(action)
    const client = await openAdminClient(context)
    const filter = { backend, agent, actor, action, credential, run, since, until }
    const names = { backend, agent: agent ?? (isNoAgent(actor ?? 'local') ? undefined : actor) }
    if (options.follow === true) await requireKnown(client, names)
    const batches =
      options.follow === true
        ? followEntries(context, client, filter, limit)
        : readEntries(client, filter, limit)
    let count = 0
    const show = async (to: Context) => {
      for await (const batch of batches)
        for (const entry of batch) {
          count += 1
          await (to.out.isJson ? to.out.json(entry, 'line') : to.out.result(lineOf(to, entry)))
        }
    }
    await (options.follow === true ? show(context) : paged(context, show))
    if (count === 0) {
      await requireKnown(client, names)
      if (!context.out.isJson) context.out.note('No entry matches.')
    }
    const isPage = limit === LIMIT && options.limit === undefined && context.stdout.isTTY === true
    // Nobody counts the whole log to say how many there are.
    if (count === LIMIT && isPage && !context.out.isJson)
      context.out.note(`The newest ${LIMIT}. See more with --limit NUMBER, --since TIME or --all.`)
  },
})

function limitOf({ limit, all }: Options): number {
  if (all === true && limit !== undefined) throw usage('--limit and --all exclude each other.')
  if (all === true) return Number.POSITIVE_INFINITY
  if (limit === undefined) return LIMIT
  if (/^\d{1,9}$/.test(limit)) return Number(limit)
  throw usage('--limit must be a whole number.', 'Write it in digits, or use --all.')
}

/** Suggests the closest action; the server would list them all. */
async function checkAction(action: string | undefined): Promise<void> {
  if (action === undefined) return
  const [{ ACTION_NAMES }, { didYouMean }] = await Promise.all([
    import('../../api/shared.ts'),
    import('../../domain/formats/suggest.ts'),
  ])
  if (!ACTION_NAMES.includes(action))
    throw usage(
      `${JSON.stringify(action.slice(0, 40))} is not an action${didYouMean(action, ACTION_NAMES)}.`,
      `The actions are ${ACTION_NAMES.join(', ')}.`,
    )
}

const ACTION_WIDTH = 24

/** `time  action  who  what`; a failure is marked. */
function lineOf({ out }: Context, entry: AuditEntry): string {
  const { timestamp, action, outcome, agent_name, agent_id, actor, backend, credential_id, run } = entry
  const { name, route, authority, method } = (entry.details ?? {}) as Readonly<Record<string, unknown>>
  const who = agent_name ?? agent_id ?? (typeof name === 'string' ? name : '')
  const by = actor === agent_id || actor === '' ? '' : `by ${actor}`
  const scopes = Array.isArray(entry.scopes) ? entry.scopes.join(' ') : ''
  const words = [
    who,
    by,
    backend ?? '',
    credential_id ?? '',
    run ?? '',
    scopes,
    entry.ttl ?? '',
    typeof route === 'string' ? route : '',
    // Where a placeholder was sent.
    ...(typeof authority === 'string' ? [typeof method === 'string' ? method : '', authority] : []),
  ]
  const text = oneLine(words.filter((word) => word !== '').join('  '))
  const mark = outcome === 'ok' ? '' : `  ${out.paint('red', oneLine(outcome))}`
  return `${oneLine(timestamp)}  ${oneLine(action).padEnd(ACTION_WIDTH)}  ${text}${mark}`.trimEnd()
}
