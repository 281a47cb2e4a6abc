import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type CreatedAgent, prepareAgent } from '../../src/core/agents/create-agent.ts'
import { audit } from '../../src/core/audit/entry.ts'
import { createBackend } from '../../src/core/backends/configure-backend.ts'
import type { Actor, LocalCaller } from '../../src/core/caller.ts'
import type { Core } from '../../src/core/context.ts'
import { createLogger } from '../../src/log/log.ts'
import { freePort } from './free-port.ts'

export const LOCAL: Actor<LocalCaller> = {
  caller: { kind: 'local', method: 'unix_socket', generation: 0 },
  origin: { requestId: 'req_test', ipAddress: '127.0.0.1', userAgent: 'vitest' },
}

export interface RequestedAgent {
  name: string
  scopes?: readonly string[]
  lifetimeMs?: number
  publicJwk?: Record<string, unknown>
}

export interface OAuthApp {
  readonly core: Core
  readonly server: Awaited<ReturnType<typeof buildApp>>['http']['server']
  /** Equal to the address once `listen` has been called. */
  readonly issuer: string
  listen(): Promise<void>
  /** Moves the server's clock. */
  advance(ms: number): void
  /** Stops it, so that only `advance` moves it. */
  freeze(): void
  createAgent(requested: RequestedAgent): Promise<CreatedAgent>
  createJwtBackend(name: string, config?: Record<string, unknown>): Promise<void>
  audited(action: string): Promise<Awaited<ReturnType<Core['store']['audit']['query']>>>
  logged(): string
  close(): Promise<void>
}

/** The whole service on a fresh SQLite store, with an issuer on loopback. */
export async function startOAuthApp(argv: Record<string, unknown> = {}): Promise<OAuthApp> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-oauth-'))
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { config } = await loadConfig({
    argv: { listen: `127.0.0.1:${port}`, issuer, dataDir: directory, ...argv },
    env: {},
    readFile: (path) => readFile(path),
  })
  const lines: string[] = []
  const log = createLogger({
    level: 'debug',
    format: 'json',
    destination: { write: (line) => lines.push(line) },
  })
  const app = await buildApp(config, log)
  const { core } = app
  let offset = 0
  const real = core.store.now
  let frozen: number | undefined
  core.store.now = () => (frozen ?? real()) + offset
  return {
    core,
    server: app.http.server,
    issuer,
    listen: async () => {
      await app.http.listen()
    },
    advance: (ms) => {
      offset += ms
    },
    freeze: () => {
      frozen ??= real()
    },
    async createAgent(requested) {
      const made = await prepareAgent(core, {
        name: requested.name,
        scopes: requested.scopes ?? [],
        lifetimeMs: requested.lifetimeMs,
        publicJwk: requested.publicJwk,
        createdBy: 'local',
      })
      const entry = audit(core, LOCAL, { action: 'agent.created', agent: made.agent })
      const outcome = await core.store.commit([...made.steps, entry])
      if (!outcome.done) throw new Error('the agent was not created')
      return made
    },
    async createJwtBackend(name, extra = {}) {
      const command = { type: 'jwt', name, config: { audience: 'demo', ...extra } }
      await createBackend(core, LOCAL, command, true)
    },
    audited: (action) => core.store.audit.query({ action }, 1_000),
    logged: () => lines.join(''),
    async close() {
      await app.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
