import type { Host, Kind } from '../backends/kind.ts'
import { createRegistry, type RegistryParts } from '../backends/open-backends.ts'
import { untraced } from '../domain/trace.ts'
import { createIdSource } from '../keys/new-id.ts'
import { createDenials } from './audit/denials.ts'
import { createLocalReads } from './audit/local-reads.ts'
import { createCallers } from './authentication/callers.ts'
import { createLastUse } from './authentication/last-use.ts'
import { definitionOf } from './backends/definition.ts'
import { createHealth } from './backends/health.ts'
import { createLastRevocations } from './backends/last-revocations.ts'
import { createUnendedCount } from './backends/unended.ts'
import type { Core } from './context.ts'
import { createFeed } from './live/feed.ts'
import { createFollowedRuns } from './live/followed-runs.ts'
import { createNotifier } from './notifications/notifier.ts'
import { createIssuerKeys } from './oauth/issuer-keys.ts'
import { createOverdue } from './overdue.ts'
import type { PluginHost } from './parts.ts'
import { createQuotas } from './quotas.ts'
import { createRates } from './rates.ts'
import { createAnswering } from './runs/answering.ts'
import { createRuns } from './runs/known-runs.ts'
import { createSerialize } from './serialize.ts'
import { createSsoProviders } from './sessions/sso-providers.ts'
import { createSnapshot } from './snapshot.ts'

/** The parts of core. The caller closes them. */
type Given = Pick<Core, 'store' | 'sealer' | 'hasher' | 'identities' | 'settings' | 'meter' | 'log'> &
  Partial<Pick<Core, 'trace'>>
/** What kinds, and the programs of plugins, may need of core. */
type Begun = Omit<Core, 'backends' | 'plugins'>

interface Kinds extends Pick<RegistryParts, 'loadKinds'> {
  readonly plugins: PluginHost
  readonly kinds: readonly Kind[]
  readonly host: (...of: Parameters<RegistryParts['host']>) => Host
}

/** The composition of core, for the server and for tests. `closeCore` ends it. */
export async function createCore(given: Given, openKinds: (core: Begun) => Promise<Kinds>): Promise<Core> {
  const { store, sealer, log, settings } = given
  const ids = createIdSource(() => store.now())
  const issuerKeys = createIssuerKeys(given)
  const runs = createRuns(given)
  const callers = createCallers({ ...given, issuerKeys, runs })
  const begun: Begun = {
    ...given,
    trace: given.trace ?? untraced,
    ids,
    issuerKeys,
    callers,
    runs,
    answering: createAnswering(given),
    denials: createDenials({ store, ids, log }),
    localReads: createLocalReads({ store, ids, log }),
    lastUse: createLastUse({ store }),
    revocations: createLastRevocations({ store }),
    unended: createUnendedCount({ store }),
    rates: createRates(),
    serialize: createSerialize(),
    quotas: createQuotas(() => store.now()),
    overdue: createOverdue({ store, log }),
    health: createHealth({ log, now: () => store.now() }),
    notifier: createNotifier({ store, ids, log }),
    feed: createFeed({ store, callers, log }),
    followedRuns: createFollowedRuns({ store, callers, runs, log }),
    sso: createSsoProviders(),
  }
  const { plugins, ...kinds } = await openKinds(begun)
  const backends = createRegistry({
    ...kinds,
    load: async () => (await store.backends.listOpen()).map((stored) => definitionOf({ sealer }, stored)),
    snapshot: (load) => createSnapshot(load, () => store.changedAt('backends')),
    lingerMs: 3 * settings.upstreamTimeoutMs,
    now: () => store.now(),
    onError: (name, error) => log.error({ err: error, backend: name }, 'backend failed'),
  })
  return { ...begun, backends, plugins }
}

/** Writes what has not been recorded yet. The store stays open. */
export async function closeCore(core: Core): Promise<void> {
  await core.feed.close()
  await core.followedRuns.close()
  await core.overdue.close()
  await core.lastUse.flush()
  await core.runs.flush(true)
  await core.revocations.flush()
  await core.denials.flush(Number.POSITIVE_INFINITY)
  await core.localReads.flush(Number.POSITIVE_INFINITY)
  await core.backends.close()
}
