import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { pause } from '../../client/abort.ts'
import type { RunningProxy } from '../../proxy/start-proxy.ts'
import { type Failure, failureOf } from '../frame/failure.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { type Channel, type FromProxy, openChannel, type ToProxy } from '../run/proxy-channel.ts'
import { inWords } from '../run/proxy-failure.ts'
import { serverOfProxy } from '../run/proxy-server.ts'
import { takeSignals } from '../run/signal-phases.ts'
import { openAgentSession, type Session } from '../session/open.ts'

const PIPE = 3

export const verb = defineVerb({
  description:
    'The proxy of a `mayfly run --proxy`, which starts it and tells it what to do over a pipe. It ends with it.',
  examples: { 'mayfly run --proxy --backend demo -- ./job.sh': 'starts a command and its proxy' },
  exits: [3, 4],
  ownSignals: true,
  run: async (context) => {
    // Signals must not end it before the command; only the other end of the pipe does.
    const release = takeSignals(() => {})
    const pipe = listen()
    const opening = openAgentSession(context)
    opening.catch(() => {})
    try {
      const start = await pipe.start
      if (start === undefined) return
      const session = await opening
      await serve(context, session, start, pipe)
    } catch (error) {
      pipe.channel.send({ failed: failureIn(error) })
      await pipe.channel.end()
    } finally {
      release()
    }
  },
})

type Start = Extract<ToProxy, { readonly start: unknown }>['start']
type Order = Exclude<ToProxy, { readonly start: unknown }>

interface Pipe {
  readonly channel: Channel<FromProxy>
  /** Undefined: the other end has gone first. */
  readonly start: Promise<Start | undefined>
  /** Everything that comes after it. */
  onOrder(handle: (order: Order) => void): void
  readonly closed: Promise<'closed'>
}

function listen(): Pipe {
  const start = Promise.withResolvers<Start | undefined>()
  const closed = Promise.withResolvers<'closed'>()
  const early: Order[] = []
  let handle = (order: Order): void => void early.push(order)
  const channel = openChannel<FromProxy, ToProxy>(new Socket({ fd: PIPE }), {
    onMessage: (message) => {
      if ('start' in message) start.resolve(message.start)
      else handle(message)
    },
    onClose: () => {
      start.resolve(undefined)
      closed.resolve('closed')
    },
  })
  const onOrder: Pipe['onOrder'] = (next) => {
    handle = next
    for (const order of early.splice(0)) next(order)
  }
  return { channel, start: start.promise, onOrder, closed: closed.promise }
}

async function serve(context: Context, session: Session, start: Start, { channel, onOrder, closed }: Pipe) {
  const { run, requests, settings, directory } = start
  const [{ startProxy }, server] = await Promise.all([
    import('../../proxy/start-proxy.ts'),
    serverOfProxy(session),
  ])
  const ids: string[] = []
  const proxy = await startProxy({
    ...{ requests, settings, directory, server },
    client: session.client,
    run: { id: run.id, heartbeatMs: run.heartbeatMs, beats: run.isOwn },
    now: context.now,
    log: { warn: (note) => channel.send({ note }) },
    onIssued: ({ id, backend, expires_at }) => {
      ids.push(id)
      channel.send({ issued: { id, backend, expires_at } })
    },
    onEnd: (ended) => channel.send({ ended }),
  })
  proxy.beaten(run.beatenAgoMs)
  channel.send({ started: proxy.credentials })
  const ended = new Promise<'told'>((resolve) => {
    onOrder((order) => {
      if ('beaten' in order) proxy.beaten(order.beaten)
      else if ('end' in order) resolve('told')
      else void lead(proxy, order.env, channel)
    })
  })
  const how = await Promise.race([ended, closed])
  await proxy.close()
  if (how === 'closed') await endAlone(session, start, ids)
  channel.send({ closed: proxy.totals() })
  await channel.end()
}

async function lead(proxy: RunningProxy, env: Context['env'], channel: Channel<FromProxy>): Promise<void> {
  try {
    channel.send({ leading: await proxy.leadTo(env) })
  } catch (error) {
    channel.send({ failed: failureIn(error) })
  }
}

/** Plain data: JSON has nothing of an error. */
function failureIn(error: unknown): Failure {
  const { code, message, hint, exitCode } = failureOf(inWords(error))
  return { code, message, hint, exitCode }
}

const ROUNDS = 20
const BETWEEN_MS = 3_000

/** `mayfly run` was killed. What it would have done at the end. */
async function endAlone({ client }: Session, { run, root }: Start, ids: readonly string[]): Promise<void> {
  await rm(root, { recursive: true, force: true }).catch(() => {})
  for (let round = 0; round < ROUNDS; round += 1) {
    const work = run.isOwn ? [client.runs.end(run.id)] : ids.map((id) => client.revoke(id))
    const results = await Promise.allSettled(work)
    if (results.every(({ status }) => status === 'fulfilled')) return
    await pause(BETWEEN_MS, undefined)
  }
}
