/**
 * Our proxy as `mayfly proxy` composes it, in its own process, with one credential that was issued already: a listener for a base
 * URL, a secret put into each request, replies masked, a line for each request sent to a server. The parent sends a `Start`.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { HttpUse } from '../../src/domain/use.ts'
import type { Held, Live } from '../../src/proxy/types.ts'
import { PLACEHOLDER, SECRET, type Start } from './start.ts'

const warn = (message: string) => console.error(`the proxy says: ${message}`)

async function start({ checkout, upstream }: Start): Promise<number> {
  const load = <T>(file: string): Promise<T> => import(pathToFileURL(join(checkout, 'src', file)).href)
  type Of<K extends keyof Files> = Files[K]
  const { createTraffic } = await load<Of<'traffic'>>('proxy/traffic/create-traffic.ts')
  const { createAuthority } = await load<Of<'authority'>>('proxy/authority/authority.ts')
  const { createCuts } = await load<Of<'cuts'>>('proxy/held/cuts.ts')
  const { createRecorder } = await load<Of<'recorder'>>('proxy/record/create-recorder.ts')
  const { createResolver } = await load<Of<'resolver'>>('egress/resolver.ts')
  const { createClient } = await load<Of<'client'>>('client/client.ts')
  const origin = `http://127.0.0.1:${upstream}`
  const client = createClient({ server: origin, auth: { kind: 'bearer', token: 'of-the-bench' } })
  const recorder = createRecorder({
    ...{ runs: client.runs, run: 'run_bench', log: { warn } },
    monotonic: () => performance.now(),
  })
  const held = heldOf(origin)
  const all = [held]
  const traffic = createTraffic({
    ...{ recorder, log: { warn }, now: Date.now, others: 'inspect', tunnel: [], isLocal: true },
    held: () => all,
    authority: createAuthority(Date.now),
    cuts: createCuts(),
    resolver: createResolver(),
    // Of another port, as always.
    ownServer: ['127.0.0.1:1'],
    onMisuse: ({ name }) => warn(`a placeholder of ${name} was misused`),
  })
  const site = await traffic.openSite(held, held.uses[0] as HttpUse)
  return Number(new URL(site.url).port)
}

interface Files {
  readonly traffic: typeof import('../../src/proxy/traffic/create-traffic.ts')
  readonly authority: typeof import('../../src/proxy/authority/authority.ts')
  readonly cuts: typeof import('../../src/proxy/held/cuts.ts')
  readonly recorder: typeof import('../../src/proxy/record/create-recorder.ts')
  readonly resolver: typeof import('../../src/egress/resolver.ts')
  readonly client: typeof import('../../src/client/client.ts')
}

function heldOf(origin: string): Held {
  const rule = (path: string, methods = ['*']) => ({ methods, path })
  const use: HttpUse = {
    ...{ protocol: 'http', name: 'api', origin, local: true },
    places: [{ in: 'header', name: 'authorization' }],
    allow: [
      rule('/repos/*/*/pulls/**', ['GET', 'POST']),
      rule('/orders/**', ['GET']),
      rule('/down/*'),
      rule('/text/*'),
      rule('/up'),
    ],
    deny: [rule('/orders/*/tokens/**'), rule('/admin/**'), rule('/user/keys')],
  }
  const live: Live = {
    ...{ state: 'live', credentialId: 'cred_bench', expiresAt: Date.now() + 3_600_000 },
    secrets: new Map([['', SECRET]]),
    open: new Map(),
  }
  const placeholders = new Map([['', PLACEHOLDER]])
  return { name: 'bench', backend: 'bench', type: 'custom', uses: [use], placeholders, now: () => live }
}

process.on('SIGINT', () => undefined)
// So that a profile is written.
process.on('SIGTERM', () => process.exit(0))
process.on('disconnect', () => process.exit(0))
process.on('message', (message: Start) => {
  void start(message).then((port) => process.send?.({ port }))
})
