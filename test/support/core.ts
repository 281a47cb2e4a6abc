import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kinds } from '../../src/backends/index.ts'
import type { Kind } from '../../src/backends/kind.ts'
import type { Actor, AgentCaller, LocalCaller, Origin } from '../../src/core/caller.ts'
import type { Core, Settings } from '../../src/core/context.ts'
import { closeCore, createCore } from '../../src/core/create-core.ts'
import { newIssuerKey } from '../../src/core/oauth/issuer-keys.ts'
import type { AuditEntry } from '../../src/domain/audit-entry.ts'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import { relyingPartyOf } from '../../src/domain/people/relying-party.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { createGate } from '../../src/http/routing/gate.ts'
import { createReplyBatch } from '../../src/http/routing/reply-batch.ts'
import type { Http } from '../../src/http/routing/route.ts'
import { createHttpServer } from '../../src/http/server/server.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import { createHasher, generateDataKey } from '../../src/keys/bearer.ts'
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

const lookup = createResolver().addresses
const sealer = createSealer(parseMasterKeys(newMasterKey()))
const hasher = createHasher(generateDataKey())
/** Shared by the tests of a file: generating an RSA key takes longer than most tests. */
let issuerKey: ReturnType<typeof newIssuerKey> | undefined

const SETTINGS: Settings = {
  version: 'test',
  issuer: 'https://mayfly.test',
  issuerNames: ['https://mayfly.test'],
  relyingParty: relyingPartyOf('https://mayfly.test'),
  console: 'on',
  operatorLogin: 'on',
  accessTokenTtlMs: 3_600_000,
  audiences: [],
  signingDomain: 'mayfly.test',
  signingIdentity: 'strict',
  signingKeyExport: true,
  policies: [],
  maxActivePerAgent: 10_000,
  runsHeartbeatMs: 10_000,
  runsMaxMs: undefined,
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
  const now = () => (frozen ?? opened.now()) + offset
  const store: Store = {
    ...opened,
    now,
    // By the clock that tests move: each commit is done before the next begins.
    audit: { ...opened.audit, horizon: async () => lowestBodyAt(now() - 1_000) },
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
  issuerKey ??= newIssuerKey({ store, sealer, settings })
  await store.commit([(await issuerKey).step])
  const none = () => undefined
  const meter = {
    issued: none,
    revoked: none,
    expired: none,
    authenticated: none,
    runStarted: none,
    runEnded: none,
    runBeat: none,
  }
  const identities = createIdentities({ lookup, timeoutMs: settings.upstreamTimeoutMs, log, now })
  const core = await createCore({ store, sealer, hasher, identities, settings, meter, log }, async () => ({
    kinds: [...kinds, ...moreKinds],
    host: ({ name }) => createTestHost(name).host,
    plugins: { describe: () => Promise.reject(new Error('no plugins here')), discard: async () => undefined },
  }))
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
      await closeCore(core)
      await opened.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
