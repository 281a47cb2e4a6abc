import { kinds } from '../backends/index.ts'
import type { Host, Kind } from '../backends/kind.ts'
import type { Config } from '../config/config.ts'
import { loadMasterKeyText } from '../config/master-key.ts'
import { recordBounds } from '../core/agents/agent-bounds.ts'
import { createBackendState } from '../core/backends/backend-state.ts'
import { SYSTEM } from '../core/caller.ts'
import type { Core } from '../core/context.ts'
import { closeCore, createCore } from '../core/create-core.ts'
import { createIdTokens } from '../core/oauth/backend-id-tokens.ts'
import { newIssuerKey } from '../core/oauth/issuer-keys.ts'
import { leaveNodes } from '../core/server/nodes.ts'
import { reloadServer } from '../core/server/reload-server.ts'
import { ConfigError } from '../domain/fault.ts'
import { networkOf } from '../egress/fetch.ts'
import { createResolver, type Resolver } from '../egress/resolver.ts'
import { createIdentities } from '../identity/identities.ts'
import { requireNothingLeftBehind } from '../jobs/rewrap.ts'
import { type Jobs, startJobs } from '../jobs/start.ts'
import { createHasher, generateDataKey } from '../keys/bearer.ts'
import { createSealer, parseMasterKeys, type Sealer } from '../keys/seal.ts'
import type { Log, Logger } from '../log/log.ts'
import { openReceivers } from '../notify/open-receivers.ts'
import { openProviders } from '../sso/open-providers.ts'
import { StoreRefused } from '../store/errors.ts'
import { openStore, type Store } from '../store/open.ts'
import { certificateIn } from './certificate.ts'
import { type HttpApp, openHttpApp } from './http-app.ts'
import { isOpenWithoutTls } from './listen.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { openPlugins } from './plugins/open-plugins.ts'
import {
  type ConfigSource,
  createReload,
  nameFaults,
  openRecipes,
  type Reloadable,
  settingsOf,
  unchanging,
} from './reload.ts'
import { openTraces, traced } from './traces/open-traces.ts'
import type { Traces } from './traces/traces.ts'
import { VERSION } from './version.ts'

export type { ConfigSource }

export interface App {
  readonly core: Core
  readonly metrics: Metrics
  readonly http: HttpApp
  /** Starts the sweeper and the other jobs. */
  startJobs(): Jobs
  /** As asked by the system. Logs what is wrong. */
  reload(): Promise<void>
  close(): Promise<void>
}

interface BuildOptions {
  readonly open?: typeof openStore
  readonly resolver?: Resolver
  readonly generateKey?: Parameters<typeof newIssuerKey>[1]
  readonly signal?: AbortSignal
  readonly source?: ConfigSource
}

/**
 * Creates all parts in order; `close` closes them in reverse. Nothing listens yet. `open` replaces the store and its
 * clock, `resolver` who knows the addresses of names, `generateKey` the first key of the issuer. With a `signal`, waits for a PostgreSQL that is not there yet until the
 * signal fires; without one, that is an error. A reload reads `source` again, or without one, the files that `config` names. Throws `ConfigError` for faults that the operator can fix.
 */
export async function buildApp(
  config: Config,
  log: Logger,
  {
    open = openStore,
    resolver = createResolver(),
    generateKey,
    signal,
    source = unchanging(config),
  }: BuildOptions = {},
): Promise<App> {
  const opened = await open({
    directory: config.dataDir,
    databaseUrl: config.databaseUrl?.reveal(),
    lookup: resolver.lookup,
    onTrouble: (what, error) => (error === undefined ? log.info({}, what) : log.error({ err: error }, what)),
    waiting: signal && {
      signal,
      onWait: (why) => log.warn({ why }, 'the database cannot be reached yet; the start waits for it'),
    },
  }).catch((error: unknown) => {
    if (!(error instanceof StoreRefused)) throw error
    const source = config.databaseUrl === undefined ? 'data_dir' : 'database_url'
    throw new ConfigError([{ source, message: error.message }])
  })
  const traces = await openTraces(config, resolver, log)
  const store = traces?.store(opened) ?? opened
  try {
    return await openParts(config, log, { store, resolver, traces, source, generateKey })
  } catch (error) {
    await store.close()
    throw error
  }
}

type Opened = Required<Pick<BuildOptions, 'resolver' | 'source'>> &
  Pick<BuildOptions, 'generateKey'> & { readonly store: Store; readonly traces: Traces | undefined }

async function openParts(config: Config, log: Logger, opened: Opened): Promise<App> {
  const { store, resolver, traces, source, generateKey } = opened
  const sealer = await openSealer(config, store, log)
  const hasher = createHasher(await openHashKey(store, sealer))
  const settings = settingsOf(config)
  const recipes = await openRecipes(config)
  nameFaults(recipes, log)
  const backends = async () => core.backends.at(await store.generation())
  const metrics = createMetrics(store, {
    all: async () => [...(await backends()).byUid.values()],
    now: async () =>
      [...(await backends()).byName.values()].map((one) => ({ ...one, health: core.health.of(one) })),
    droppedSpans: traces && (() => traces.exporter.dropped),
  })
  const identities = createIdentities({
    lookup: resolver.addresses,
    timeoutMs: config.upstreamTimeoutMs,
    log,
    now: () => store.now(),
  })
  const given = { store, sealer, hasher, identities, settings, meter: metrics.meter, log, ...traced(traces) }
  const kindOf = (kind: Kind) => traces?.kind(kind) ?? kind
  const core: Core = await createCore(given, async (begun) => {
    const plugins = await openPlugins(config, begun)
    const idToken = createIdTokens(begun)
    return {
      plugins: plugins.host,
      kinds: [...kinds, ...recipes.kinds].map(kindOf),
      loadKinds: async () => plugins.kindsOf(await store.plugins.list()).map(kindOf),
      host: (of, kind, own) => hostOf(of, config, { ...begun, idToken, resolver, kind, own, traces }),
    }
  })
  await ensureIssuerKey(core, generateKey)
  await recordBounds(core)
  await warnOfPasskeys(core)
  await backends()
  const reload = createReload(source, { core, settings, recipes, kindOf, log })
  reload.add(setReceivers(core, config, resolver))
  reload.add(setProviders(core, config, resolver))
  reload.add(setTrusted(core, config))
  const http = await openHttpApp(config, core, { metrics, traces, log, reload })
  reload.add(http.reload)
  return {
    core,
    metrics,
    http,
    reload: async () => void (await reloadServer(core, SYSTEM, reload.read)),
    startJobs: () =>
      startJobs(core, {
        retentionMs: config.retentionMs,
        announce: reload.announce,
        certificate: () => certificateIn(http.certificate()),
      }),
    close: async () => {
      await http.close()
      await leaveNodes(core, reload.self()).catch(() => undefined)
      await closeCore(core)
      await traces?.close()
      await store.close()
    },
  }
}

/** The receivers of notifications: those of the configuration now, and after each reload. */
function setReceivers(core: Core, config: Config, { addresses: lookup }: Resolver): Reloadable {
  const receiversOf = ({ notify, issuer }: Config) => openReceivers(notify, { lookup, issuer })
  core.notifier.setReceivers(receiversOf(config))
  return async (next) => {
    const receivers = receiversOf(next)
    return { apply: () => core.notifier.setReceivers(receivers) }
  }
}

/** The providers of single sign-on, likewise. */
function setProviders(core: Core, config: Config, { addresses: lookup }: Resolver): Reloadable {
  const { log, store, sso } = core
  const ways = { lookup, log, timeoutMs: config.upstreamTimeoutMs, now: () => store.now() }
  sso.setProviders(openProviders(config.sso, ways))
  return async (next) => {
    const providers = openProviders(next.sso, ways)
    return { apply: () => sso.setProviders(providers) }
  }
}

/** Whose tokens are trusted, likewise. */
function setTrusted({ identities }: Core, config: Config): Reloadable {
  const trustedOf = ({ identities, platforms }: Config) => ({ identities, platforms })
  identities.setTrusted(trustedOf(config))
  return async (next) => ({ apply: () => identities.setTrusted(trustedOf(next)) })
}

/** Runs until `close`. Throws the reason of `signal` if that fires while the start waits for the database. */
export async function startServer(
  source: ConfigSource,
  log: Logger,
  signal: AbortSignal,
): Promise<{ address: string; reload(): Promise<void>; close(): Promise<void> }> {
  const { config } = source.loaded
  const app = await buildApp(config, log, { signal, source })
  let jobs: Jobs | undefined
  try {
    const address = await app.http.listen()
    jobs = app.startJobs()
    if (isOpenWithoutTls(config))
      log.warn(
        { listen: `${config.listen.host}:${config.listen.port}` },
        'other machines reach this server without TLS, and anyone on the way reads every secret: set tls_cert_file and tls_key_file, or listen on 127.0.0.1',
      )
    log.info({ issuer: config.issuer, store: app.core.store.dialect, version: VERSION }, 'ready')
    if (config.quickstart) {
      const { quickstart } = await import('./quickstart.ts')
      await quickstart(app.core, { address, dataDir: config.dataDir })
    }
    return {
      address,
      reload: app.reload,
      close: async () => {
        await app.http.drain()
        await jobs?.stop()
        await app.close()
      },
    }
  } catch (error) {
    await jobs?.stop()
    await app.close()
    throw error
  }
}

/** Checks that the master key is the one that sealed the store; a new store gets a new key. */
async function openSealer(config: Config, store: Store, log: Log): Promise<Sealer> {
  const stored = await store.meta.get('key_check')
  const text = await loadMasterKeyText(config, {
    createIfMissing: stored === undefined,
    onCreated: (file) =>
      log.warn(
        { file },
        'created a new master key: back it up; the stored data cannot be decrypted without it',
      ),
  })
  const sealer = sealerOf(text)
  if (stored === undefined) {
    await store.commit([store.meta.add('key_check', sealer.keyCheck())])
    return openSealerAgain(store, sealer)
  }
  if (!sealer.matchesCheck(stored))
    throw keyFault('this store was sealed with another master key. Name the right one with --master-key-file')
  if (sealer.lacksSome(stored)) await requireNothingLeftBehind({ store, sealer })
  if (stored !== sealer.keyCheck())
    await store.commit([store.meta.replace('key_check', stored, sealer.keyCheck())])
  return sealer
}

function sealerOf(text: string): Sealer {
  try {
    return createSealer(parseMasterKeys(text))
  } catch (error) {
    throw keyFault(error instanceof Error ? error.message : String(error))
  }
}

const keyFault = (message: string) => new ConfigError([{ source: 'master key', message }])

/** If two nodes start on a new store at once, the one whose key came second must stop. */
async function openSealerAgain(store: Store, sealer: Sealer): Promise<Sealer> {
  if (sealer.matchesCheck((await store.meta.get('key_check')) ?? '')) return sealer
  throw new Error('another node started on this store with another master key')
}

/** The hash key is random and sealed, so that stored hashes survive a change of the master key. */
async function openHashKey(store: Store, sealer: Sealer): Promise<Buffer> {
  const stored = await store.meta.get('hash_key')
  if (stored !== undefined) return Buffer.from(sealer.open('meta', 'hash_key', 'value', stored), 'base64url')
  const made = generateDataKey().toString('base64url')
  await store.commit([store.meta.add('hash_key', sealer.seal('meta', 'hash_key', 'value', made))])
  return openHashKey(store, sealer)
}

/** Of nodes that start on an empty store at once, one makes the key: the others find its mark, and use its key. */
async function ensureIssuerKey(core: Core, generateKey: BuildOptions['generateKey']): Promise<void> {
  const { store } = core
  const hasKey = async () =>
    (await store.tokens.issuerKeys(store.now())).some((key) => key.retiresAt === null)
  if (await hasKey()) return
  const { step, kid } = await newIssuerKey(core, generateKey)
  const outcome = await store.commit([
    store.meta.add('issuer_key', kid),
    step,
    { op: 'invalidate', topic: 'keys' },
  ])
  if (!outcome.done && !(await hasKey())) throw new Error('another node has begun to make the issuer key')
}

/** Passkeys belong to the host of the issuer. */
async function warnOfPasskeys({ store, settings, log }: Core): Promise<void> {
  const { id: host } = settings.relyingParty
  const passkeys = await store.operators.countPasskeysBeside(host)
  if (passkeys > 0)
    log.warn(
      { passkeys, host },
      'passkeys were registered for another address of this server, and do not work any more: their owners need a new link (mayfly console --operator EMAIL)',
    )
}

interface HostNeeds extends Pick<Core, 'store' | 'sealer' | 'log'> {
  readonly idToken: Host['idToken']
  readonly resolver: Resolver
  readonly traces: Traces | undefined
  readonly kind: Kind
  /** The configuration of the backend. */
  readonly own: Readonly<Record<string, unknown>>
}

function hostOf(
  { uid, name }: Pick<Host, 'uid' | 'name'>,
  config: Config,
  { store, sealer, log, idToken, resolver, kind, own, traces }: HostNeeds,
): Host {
  const timeoutMs = config.upstreamTimeoutMs
  const ownLog = log.child({ backend: name })
  const network = networkOf(kind, own, { lookup: resolver.addresses, timeoutMs, log: ownLog })
  return {
    uid,
    name,
    issuer: `${config.issuer}/backends/${name}`,
    issuerUrl: config.issuer,
    idToken,
    now: store.now,
    state: createBackendState({ store, sealer }, uid),
    timeoutMs,
    ...network,
    fetch: traces?.fetch(network.fetch) ?? network.fetch,
    log: ownLog,
  }
}
