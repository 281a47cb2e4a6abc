import { readFile } from 'node:fs/promises'
import { kinds } from '../backends/index.ts'
import type { Host, Kind } from '../backends/kind.ts'
import type { Config } from '../config/config.ts'
import { loadMasterKeyText } from '../config/master-key.ts'
import { recordBounds } from '../core/agents/agent-bounds.ts'
import { createBackendState } from '../core/backends/backend-state.ts'
import type { Core, Settings } from '../core/context.ts'
import { closeCore, createCore } from '../core/create-core.ts'
import { createIdTokens } from '../core/oauth/backend-id-tokens.ts'
import { newIssuerKey } from '../core/oauth/issuer-keys.ts'
import { ConfigError } from '../domain/fault.ts'
import { loopbackForms } from '../domain/loopback.ts'
import { relyingPartyOf } from '../domain/relying-party.ts'
import { resolveChecked } from '../egress/address.ts'
import { createEgressFetch } from '../egress/fetch.ts'
import { createListenerCheck, listenerRulesOf } from '../egress/listener.ts'
import { createResolver, type Resolver } from '../egress/resolver.ts'
import { requireNothingLeftBehind } from '../jobs/rewrap.ts'
import { type Jobs, startJobs } from '../jobs/start.ts'
import { createHasher, generateDataKey } from '../keys/bearer.ts'
import { createSealer, parseMasterKeys, type Sealer } from '../keys/seal.ts'
import type { Log } from '../log/log.ts'
import { StoreRefused } from '../store/errors.ts'
import { openStore, type Store } from '../store/open.ts'
import { type HttpApp, openHttpApp } from './http-app.ts'
import { isOpenWithoutTls } from './listen.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { openPlugins } from './plugins/open-plugins.ts'
import { readRecipes } from './recipes.ts'
import { VERSION } from './version.ts'

export interface App {
  readonly core: Core
  readonly metrics: Metrics
  readonly http: HttpApp
  /** Starts the sweeper and the other jobs. */
  startJobs(): Jobs
  close(): Promise<void>
}

interface BuildOptions {
  readonly open?: typeof openStore
  readonly resolver?: Resolver
  readonly generateKey?: Parameters<typeof newIssuerKey>[1]
  readonly signal?: AbortSignal
}

/**
 * Creates all parts in order; `close` closes them in reverse. Nothing listens yet. `open` replaces the store and its
 * clock, `resolver` who knows the addresses of names, `generateKey` the first key of the issuer. With a `signal`, waits for a PostgreSQL that is not there yet until the
 * signal fires; without one, that is an error. Throws `ConfigError` for faults that the operator can fix.
 */
export async function buildApp(
  config: Config,
  log: Log,
  { open = openStore, resolver = createResolver(), generateKey, signal }: BuildOptions = {},
): Promise<App> {
  const store = await open({
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
  try {
    const sealer = await openSealer(config, store, log)
    const hasher = createHasher(await openHashKey(store, sealer))
    const settings = settingsOf(config)
    const metrics = createMetrics(store, async () => [
      ...(await core.backends.at(await store.generation())).byUid.values(),
    ])
    const { meter } = metrics
    const core: Core = await createCore({ store, sealer, hasher, settings, meter, log }, async (begun) => {
      const plugins = await openPlugins(config, begun)
      const idToken = createIdTokens(begun)
      return {
        plugins: plugins.host,
        kinds: [...kinds, ...(await ownRecipes(config))],
        loadKinds: async () => plugins.kindsOf(await store.plugins.list()),
        host: (of, kind, own) => hostOf(of, config, { ...begun, idToken, resolver, kind, own }),
      }
    })
    await ensureIssuerKey(core, generateKey)
    await recordBounds(core)
    await warnOfPasskeys(core)
    await core.backends.at(await store.generation())
    const http = await openHttpApp(config, core, metrics, log)
    return {
      core,
      metrics,
      http,
      startJobs: () => startJobs(core, { retentionMs: config.retentionMs }),
      close: async () => {
        await http.close()
        await closeCore(core)
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Kinds that are recipes in `recipes_dir` (ADR 0035). */
async function ownRecipes({ recipesDir }: Config): Promise<readonly Kind[]> {
  return recipesDir === undefined ? [] : readRecipes(recipesDir, (path) => readFile(path))
}

/** Runs until `close`. Throws the reason of `signal` if that fires while the start waits for the database. */
export async function startServer(
  config: Config,
  log: Log,
  signal: AbortSignal,
): Promise<{ address: string; close(): Promise<void> }> {
  const app = await buildApp(config, log, { signal })
  let jobs: Jobs | undefined
  try {
    const address = await app.http.listen()
    jobs = app.startJobs()
    if (isOpenWithoutTls(config))
      log.warn(
        { listen: `${config.listen.host}:${config.listen.port}` },
        'other machines reach this server without TLS, and whoever is on the way reads every secret: set tls_cert_file and tls_key_file, or listen on 127.0.0.1',
      )
    log.info({ issuer: config.issuer, store: app.core.store.dialect, version: VERSION }, 'ready')
    if (config.quickstart) {
      const { quickstart } = await import('./quickstart.ts')
      await quickstart(app.core, { address, dataDir: config.dataDir })
    }
    return {
      address,
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

/** What use cases may know of the configuration: everything but its secrets. */
function settingsOf({ databaseUrl: _, masterKey: __, pluginEnv: ___, ...config }: Config): Settings {
  const { issuer, previousIssuers } = config
  return {
    ...config,
    issuerNames: [issuer, ...previousIssuers].flatMap(loopbackForms),
    relyingParty: relyingPartyOf(issuer),
    version: VERSION,
  }
}

interface HostNeeds extends Pick<Core, 'store' | 'sealer' | 'log'> {
  readonly idToken: Host['idToken']
  readonly resolver: Resolver
  readonly kind: Kind
  /** The configuration of the backend. */
  readonly own: Readonly<Record<string, unknown>>
}

function hostOf(
  { uid, name }: Pick<Host, 'uid' | 'name'>,
  config: Config,
  { store, sealer, log, idToken, resolver, kind, own }: HostNeeds,
): Host {
  const lookup = resolver.addresses
  const timeoutMs = config.upstreamTimeoutMs
  const ownLog = log.child({ backend: name })
  const checkListener = createListenerCheck({ ...listenerRulesOf(kind, own), log: ownLog })
  return {
    uid,
    name,
    issuer: `${config.issuer}/backends/${name}`,
    issuerUrl: config.issuer,
    idToken,
    now: store.now,
    state: createBackendState({ store, sealer }, uid),
    timeoutMs,
    checkListener,
    fetch: createEgressFetch({ local: false, timeoutMs, lookup, checkListener }),
    resolve: (hostname, options) => resolveChecked(hostname, { ...options, lookup }),
    log: ownLog,
  }
}
