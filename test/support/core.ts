import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kinds } from '../../src/backends/index.ts'
import type { Kind } from '../../src/backends/kind.ts'
import { createRegistry } from '../../src/backends/open-backends.ts'
import { createDenials } from '../../src/core/audit/denials.ts'
import { createLocalReads } from '../../src/core/audit/local-reads.ts'
import { createCallers } from '../../src/core/authentication/callers.ts'
import { createLastUse } from '../../src/core/authentication/last-use.ts'
import { definitionOf } from '../../src/core/backends/definition.ts'
import type { Actor, AgentCaller, LocalCaller, Origin } from '../../src/core/caller.ts'
import type { Core, Settings } from '../../src/core/context.ts'
import { createIssuerKeys, newIssuerKey } from '../../src/core/oauth/issuer-keys.ts'
import { createOverdue } from '../../src/core/overdue.ts'
import { createQuotas } from '../../src/core/quotas.ts'
import { createRates } from '../../src/core/rates.ts'
import { createSerialize } from '../../src/core/serialize.ts'
import { createSnapshot } from '../../src/core/snapshot.ts'
import type { AuditEntry } from '../../src/domain/audit-entry.ts'
import { createGate } from '../../src/http/routing/gate.ts'
import { createReplyBatch } from '../../src/http/routing/reply-batch.ts'
import type { Http } from '../../src/http/routing/route.ts'
import { createHttpServer } from '../../src/http/server/server.ts'
import * as bearer from '../../src/keys/bearer.ts'
import * as jwtKeys from '../../src/keys/jwt-keys.ts'
import { createIdSource } from '../../src/keys/new-id.ts'
import * as pgp from '../../src/keys/pgp.ts'
import * as proofs from '../../src/keys/proofs.ts'
import * as publicJwk from '../../src/keys/public-jwk.ts'
import { createSealer, parseMasterKeys } from '../../src/keys/seal.ts'
import { createLogger } from '../../src/log/log.ts'
import type { Change } from '../../src/store/engine/change.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { createTestHost } from './host.ts'
import { newMasterKey } from './master-key.ts'

/** Makes an injected request one of the local host. */
export const AS_LOCAL = { 'x-test-local': 'yes' }
export const ORIGIN: Origin = { requestId: 'req_test', ipAddress: '192.0.2.1', userAgent: 'test' }
export const LOCAL: Actor<LocalCaller> = {
  caller: { kind: 'local', method: 'unix_socket', generation: 0 },
  origin: ORIGIN,
}
/** Whom nothing authenticates. */
export const ANYBODY: Actor<undefined> = { caller: undefined, origin: ORIGIN }
export const anybodyFrom = (ipAddress: string): Actor<undefined> => ({
  caller: undefined,
  origin: { ...ORIGIN, ipAddress },
})

const keys = { ...bearer, ...jwtKeys, ...pgp, ...proofs, ...publicJwk }
const sealer = createSealer(parseMasterKeys(newMasterKey()))
const hasher = bearer.createHasher(bearer.generateDataKey())
/** Shared by the tests of a file: generating an RSA key takes longer than most tests. */
let issuerKey: ReturnType<typeof newIssuerKey> | undefined

const SETTINGS: Settings = {
  version: 'test',
  issuer: 'https://mayfly.test',
  issuerNames: ['https://mayfly.test'],
  accessTokenTtlMs: 3_600_000,
  audiences: [],
  signingDomain: 'mayfly.test',
  signingIdentity: 'strict',
  signingKeyExport: true,
  policies: [],
  maxActivePerAgent: 10_000,
  issueRate: undefined,
  maxPendingEnrollments: 1_000,
  enrollmentsPerMinute: 10,
  tokenFailuresPerMinute: 10,
  tokensPerMinute: 600,
  upstreamTimeoutMs: 10_000,
  revokeUndelivered: true,
}

export interface TestCore {
  readonly core: Core
  /** The test registers its routes on it. */
  readonly http: Http
  /** Moves the store's clock forward, in ms. */
  advance(ms: number): void
  /** Stops the clock, so that only `advance` moves it. */
  freeze(): void
  /** Runs `race` once, just before the next commit whose change satisfies `when`. */
  before(when: (change: Change) => boolean, race: () => Promise<unknown>): void
  /** Oldest first. */
  audit(action?: string): Promise<(AuditEntry & { facts: Readonly<Record<string, unknown>> })[]>
  /** The agent with this bearer token. */
  actor(token: string): Promise<Actor<AgentCaller>>
  logged(): string
  close(): Promise<void>
}

/** The real core on a real SQLite file, with a clock that tests can move. */
export async function testCore(
  overrides: Partial<Settings> = {},
  moreKinds: readonly Kind[] = [],
): Promise<TestCore> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-core-'))
  const opened = await openStore({ directory })
  let offset = 0
  let frozen: number | undefined
  let race: { when: (change: Change) => boolean; run: () => Promise<unknown> } | undefined
  const store: Store = {
    ...opened,
    now: () => (frozen ?? opened.now()) + offset,
    commit: async (change, options) => {
      if (race?.when(change) === true) {
        const { run } = race
        race = undefined
        await run()
      }
      return opened.commit(change, options)
    },
  }
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'debug', format: 'json', destination })
  const settings = { ...SETTINGS, ...overrides }
  const base = { store, sealer, hasher, keys, settings, log, ids: createIdSource(store.now) }
  issuerKey ??= newIssuerKey(base)
  await store.commit([(await issuerKey).step])
  const issuerKeys = createIssuerKeys(base)
  const backends = createRegistry({
    kinds: [...kinds, ...moreKinds],
    load: async () => (await store.backends.listOpen()).map((row) => definitionOf({ sealer }, row)),
    snapshot: (load) => createSnapshot(load, () => store.changedAt('backends')),
    host: ({ name }) => createTestHost(name).host,
    lingerMs: 3 * settings.upstreamTimeoutMs,
    now: store.now,
    onError: (name, error) => log.error({ err: error, name }, 'backend'),
  })
  const none = () => undefined
  const core: Core = {
    ...base,
    issuerKeys,
    backends,
    plugins: { describe: () => Promise.reject(new Error('no plugins here')), discard: async () => undefined },
    callers: createCallers({ ...base, issuerKeys }),
    denials: createDenials(base),
    localReads: createLocalReads(base),
    lastUse: createLastUse(base),
    rates: createRates(),
    serialize: createSerialize(),
    quotas: createQuotas(store.now),
    overdue: createOverdue({ ...base, random: Math.random }),
    meter: { issued: none, revoked: none, expired: none, authenticated: none },
    random: Math.random,
  }
  const server = createHttpServer({ log, newRequestId: () => core.ids.id('request') })
  const gate = createGate({
    core,
    localHost: ({ headers }) => (headers['x-test-local'] === 'yes' ? 'local' : 'not_local'),
    isUnixSocket: () => false,
  })
  return {
    core,
    http: { server, core, gate, replies: createReplyBatch() },
    advance: (ms) => {
      offset += ms
    },
    freeze: () => {
      frozen ??= opened.now()
    },
    before: (when, run) => {
      race = { when, run }
    },
    audit: async (action) => {
      const entries = await store.audit.query(action === undefined ? {} : { action }, 1_000)
      return entries.reverse().map((entry) => ({ ...entry, facts: entry.details ?? {} }))
    },
    actor: async (token) => {
      const caller = await core.callers.find(token, await store.generation())
      if (caller === undefined) throw new Error('no such agent')
      return { caller, origin: ORIGIN }
    },
    logged: () => lines.join(''),
    async close() {
      await server.close()
      await core.overdue.close()
      await backends.close()
      await opened.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
