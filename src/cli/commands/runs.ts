import type { RecordedRequest, Run } from '../../client/wire.ts'
import { requireKnown } from '../admin/require-known.ts'
import { ADMIN, FILTERS } from '../admin/verbs.ts'
import { LIST_OPTIONS, type Rows, shortened, showList } from '../frame/list.ts'
import { choice, flag } from '../frame/options.ts'
import { type Cell, listing } from '../frame/output.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient, openOwnClient } from '../session/admin.ts'

const STATES = ['running', 'ended', 'all'] as const
const ALL_AGENTS = { allAgents: flag('of all agents, even if you have a login') }
const ID = { name: '<id>', description: 'id from `mayfly runs ls`', values: 'runs' } as const

/** The runs that the caller may see: its own, or with `isOfAll`, and without a login, those of all agents. */
async function openRuns(context: Context, isOfAll: boolean) {
  const own = isOfAll ? undefined : await openOwnClient(context)
  if (own !== undefined) return { client: own, runs: own.runs, isOwn: true }
  const client = await openAdminClient(context)
  return { client, runs: client.admin.runs, isOwn: false }
}

export const list = defineVerb({
  description:
    'Lists your runs that live, newest first. What is issued for a run ends with it. Without a login, and with --data-dir, --all-agents or --agent, it lists those of all agents, which needs an administrator.',
  options: {
    agent: FILTERS.agent,
    state: choice('<state>', 'only those that live, only those that have ended, or all', STATES, {
      default: 'running',
    }),
    ...ALL_AGENTS,
    ...LIST_OPTIONS,
  },
  examples: {
    'mayfly runs ls': 'your runs that live',
    'mayfly runs ls --agent ci-42 --state all': 'what an agent runs and ran',
  },
  json: async () => {
    const [{ Run: shape }, { Type }] = await Promise.all([import('../../api/runs.ts'), import('typebox')])
    return Type.Array(shape)
  },
  ...ADMIN,
  run: async (context, options) => {
    const { agent, allAgents } = options
    const { client, isOwn } = await openRuns(context, allAgents === true || agent !== undefined)
    const state = options.state === 'all' ? undefined : options.state
    const { now } = context
    const kept = state === undefined ? '' : `${state} `
    const owner = (run: Run) => (isOwn ? [] : [run.agent.name])
    const shape: Rows<Run> = {
      things: `${kept}runs`,
      none: `No ${kept}runs.`,
      onNone: () => (isOwn ? Promise.resolve() : requireKnown(client, { agent })),
      heading: [
        'RUN',
        ...(isOwn ? [] : ['AGENT']),
        'STATE',
        'CREDENTIALS',
        'STARTED',
        'LAST BEAT',
        'PURPOSE',
      ],
      spare: ['LAST BEAT', 'CREDENTIALS', 'STARTED', 'PURPOSE'],
      cells: (run) => [
        run.id,
        ...owner(run),
        stateOf(run),
        String(run.credentials.live),
        relative(run.started_at, now()),
        relative(run.last_beat, now()),
        shortened(run.purpose ?? '', SHOWN),
      ],
    }
    const read = (page: { readonly limit: number }) =>
      isOwn ? client.runs.list({ state }, page) : client.admin.runs.list({ state, agent }, page)
    await showList(context, options, read, shape)
  },
})

const stateOf = ({ state, reason }: Run): Cell =>
  reason === 'missed_heartbeat'
    ? { text: `${state}, ${inWords(reason)}`, colour: 'yellow' }
    : `${state}${reason === null ? '' : `, ${inWords(reason)}`}`

const inWords = (reason: string) => reason.replaceAll('_', ' ')

/** It stands last, and `show` has the rest of it. */
const SHOWN = 60

export const show = defineVerb({
  description: 'Shows a run: yours, or with --all-agents, and without a login, that of any agent.',
  arguments: [ID],
  options: ALL_AGENTS,
  examples: { 'mayfly runs show run_01…': 'when it began, when it is dead, why it ended' },
  json: async () => (await import('../../api/runs.ts')).Run,
  ...ADMIN,
  run: async (context, { allAgents }, id) => {
    const { runs } = await openRuns(context, allAgents === true)
    const run = await runs.show(id)
    await context.out.show(run, () => describe(run, context.now()))
  },
})

function describe(run: Run, now: number): string {
  const at = (time: string | null) => (time === null ? undefined : `${time} (${relative(time, now)})`)
  return listing({
    run: run.id,
    agent: `${run.agent.name} (${run.agent.id})`,
    purpose: run.purpose ?? undefined,
    state: run.state,
    heartbeat: `every ${run.heartbeat}`,
    'live credentials': String(run.credentials.live),
    requests: run.requests && requestsOf(run.requests),
    started: at(run.started_at),
    'last beat': at(run.last_beat),
    'dead without another': at(run.dead_at),
    'ends at the latest': at(run.expires_at),
    ended: at(run.ended_at),
    reason: run.reason === null ? undefined : inWords(run.reason),
    'ended by': run.ended_by ?? undefined,
    from: run.ip_address ?? undefined,
    'user agent': run.user_agent ?? undefined,
  })
}

const requestsOf = ({ total, refused, redacted }: NonNullable<Run['requests']>) =>
  `${total} (${refused} refused, ${redacted} ${redacted === 1 ? 'secret' : 'secrets'} masked)`

export const requests = defineVerb({
  description:
    'Lists what `mayfly proxy` has told of the requests of a run, newest first: of your run, or with --all-agents, and without a login, of that of any agent. Values of queries, headers and bodies are never recorded.',
  arguments: [ID],
  options: {
    refused: flag('only those that were refused'),
    ...ALL_AGENTS,
    ...LIST_OPTIONS,
  },
  examples: {
    'mayfly runs requests run_01…': 'what was called with its credentials',
    'mayfly runs requests run_01… --refused': 'what was refused, and why',
  },
  json: async () => {
    const [{ RecordedRequest: shape }, { Type }] = await Promise.all([
      import('../../api/run-requests.ts'),
      import('typebox'),
    ])
    return Type.Array(shape)
  },
  ...ADMIN,
  run: async (context, { refused, allAgents, ...options }, id) => {
    const { runs } = await openRuns(context, allAgents === true)
    const filter = refused === true ? { decision: 'refused' } : {}
    const kept = refused === true ? 'refused requests' : 'requests'
    await showList(context, options, (page) => runs.requests(id, filter, page), {
      things: kept,
      none: `No ${kept}.`,
      heading: ['TIME', 'DECISION', 'STATUS', 'MS', 'BACKEND', 'REQUEST'],
      spare: ['MS', 'BACKEND', 'STATUS'],
      least: 30,
      cells: (one) => [
        relative(one.at, context.now()),
        decisionOf(one),
        one.status === null ? '' : String(one.status),
        String(one.duration_ms),
        one.backend ?? '',
        `${one.method ?? one.protocol} ${one.authority}${one.path ?? ''}`,
      ],
    })
  },
})

const decisionOf = ({ decision, reason, redacted }: RecordedRequest): Cell => {
  const words = [decision, ...(reason === null ? [] : [inWords(reason)])]
  const text = [...words, ...(redacted === 0 ? [] : [`${redacted} masked`])].join(', ')
  return decision === 'refused' || decision === 'misused' ? { text, colour: 'yellow' } : text
}

export const end = defineVerb({
  description:
    'Ends runs with all their credentials: yours, or with --all-agents, and without a login, those of any agent. Ending one that has ended is no error. A `mayfly run` that works says so, and its command gets the signal that its --on-end names.',
  arguments: [{ ...ID, name: '<ids...>' }],
  options: ALL_AGENTS,
  examples: { 'mayfly runs end run_01…': 'what was issued for it ends at once' },
  json: 'array of {id, ended}',
  ...ADMIN,
  run: async (context, { allAgents }, ids) => {
    const { runs } = await openRuns(context, allAgents === true)
    const done: string[] = []
    let failure: unknown
    for (const id of ids) {
      try {
        await runs.end(id)
        done.push(id)
      } catch (error) {
        context.signal.throwIfAborted()
        context.out.note(`mayfly: ${id} was not ended.`)
        failure ??= error
      }
    }
    await context.out.report(
      done.map((id) => ({ id, ended: true })),
      done.map((id) => `Ended ${id}.`).join('\n'),
    )
    if (failure !== undefined) throw failure
  },
})
