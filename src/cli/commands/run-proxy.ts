import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { pause } from '../../client/abort.ts'
import { MayflyError } from '../../client/errors.ts'
import { unlessAborted } from '../../domain/abort.ts'
import type { RunningProxy } from '../../proxy/start-proxy.ts'
import { failureOf } from '../frame/failure.ts'
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
      pipe.channel.send(failureIn(error))
      await pipe.channel.end()
    } finally {
      release()
      // Everything is recorded and said; what is still open is of no use, and Node might wait for it for ever.
      process.exit()
    }
  },
})

type Start = Extract<ToProxy, { readonly start: unknown }>['start']
type Order = Exclude<ToProxy, { readonly start: unknown } | { readonly end: true }>

interface Pipe {
  readonly channel: Channel<FromProxy>
  /** Undefined: the other end has gone first. */
  readonly start: Promise<Start | undefined>
  /** Everything that comes after it. */
  onOrder(handle: (order: Order) => void): void
  /** It was told to end, or the other end has gone. */
  readonly over: Promise<'told' | 'gone'>
}

function listen(): Pipe {
  const start = Promise.withResolvers<Start | undefined>()
  const over = Promise.withResolvers<'told' | 'gone'>()
  const early: Order[] = []
  let handle = (order: Order): void => void early.push(order)
  const channel = openChannel<FromProxy, ToProxy>(new Socket({ fd: PIPE }), {
    onMessage: (message) => {
      if ('start' in message) start.resolve(message.start)
      else if ('end' in message) over.resolve('told')
      else handle(message)
    },
    onClose: () => {
      start.resolve(undefined)
      over.resolve('gone')
    },
  })
  const onOrder: Pipe['onOrder'] = (next) => {
    handle = next
    for (const order of early.splice(0)) next(order)
  }
  return { channel, start: start.promise, onOrder, over: over.promise }
}

async function serve(context: Context, session: Session, start: Start, { channel, onOrder, over }: Pipe) {
  const { run, requests, settings, directory } = start
  const [{ startProxy }, server] = await Promise.all([
    import('../../proxy/start-proxy.ts'),
    serverOfProxy(session),
  ])
  const ids: string[] = []
  const starting = startProxy({
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
  const givenUp = new AbortController()
  void over.then(() => givenUp.abort(new Error('given up')))
  // The end of the run ends what is issued late; without one of our own, everything must be known that is to be revoked.
  const signal = run.isOwn ? givenUp.signal : undefined
  const proxy = await unlessAborted(starting, signal, (late) => late.close()).catch((error: unknown) => {
    if (!givenUp.signal.aborted) throw error
  })
  if (proxy !== undefined) {
    proxy.beaten(run.beatenAgoMs)
    channel.send({ started: proxy.credentials })
    onOrder((order) => {
      if ('beaten' in order) proxy.beaten(order.beaten)
      else void lead(proxy, order.env, channel)
    })
  }
  const how = await over
  await proxy?.close()
  if (how === 'gone') await endAlone(session, start, ids)
  if (proxy !== undefined) channel.send({ closed: proxy.totals() })
  await channel.end()
}

async function lead(proxy: RunningProxy, env: Context['env'], channel: Channel<FromProxy>): Promise<void> {
  try {
    channel.send({ leading: await proxy.leadTo(env) })
  } catch (error) {
    channel.send(failureIn(error))
  }
}

/** Plain data: JSON has nothing of an error. What the server says, `mayfly run` puts into its own words. */
function failureIn(error: unknown): FromProxy {
  if (error instanceof MayflyError) return { refused: { ...error, message: error.message } }
  const { code, message, hint, exitCode } = failureOf(inWords(error))
  return { failed: { code, message, hint, exitCode } }
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
