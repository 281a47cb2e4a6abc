import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAgent } from '../../src/core/agents/create-agent.ts'
import { createBackend } from '../../src/core/backends/configure-backend.ts'
import { reloadPlugin } from '../../src/core/backends/plugins.ts'
import type { Actor, AgentCaller } from '../../src/core/caller.ts'
import { issueCredential } from '../../src/core/credentials/issue-credential.ts'
import { revokeCredential } from '../../src/core/credentials/revoke-credential.ts'
import { Problem } from '../../src/domain/problems.ts'
import { createSweeper } from '../../src/jobs/sweep.ts'
import {
  type BuiltPlugin,
  openBuiltPlugin,
  type PluginRedis,
  startPluginRedis,
} from '../support/built-plugin.ts'
import { LOCAL, type TestCore, testCore } from '../support/core.ts'
import { LONG } from '../support/long.ts'
import { canBuild } from '../support/plugins/build.ts'
import { poll } from '../support/server-process.ts'

const KILLS = LONG ? 100 : 3
const CLIENTS = 6
/** Acknowledged between two kills. */
const PROGRESS = 5
/** Stay alive to the end. */
const FEWEST = 20

interface Known {
  readonly id: string
  readonly login: { readonly username: string; readonly password: string }
  revoked: 'no' | 'asked' | 'done'
}

describe.skipIf(!(await canBuild('go-redis')))('a plugin that is killed under load', () => {
  let plugin: BuiltPlugin
  let redis: PluginRedis
  let test: TestCore
  let actor: Actor<AgentCaller>
  const known: Known[] = []
  const unexpected: unknown[] = []
  let failed = 0

  beforeAll(async () => {
    plugin = await openBuiltPlugin('go-redis')
    redis = await startPluginRedis()
    test = await testCore({ upstreamTimeoutMs: 2_000 }, [plugin.kind])
    const command = { type: plugin.kind.type, name: 'cache', config: redis.config }
    await createBackend(test.core, LOCAL, command, true)
    const { token } = await createAgent(test.core, LOCAL, { name: 'load', scopes: ['cache:read:*'] })
    actor = await test.actor(token)
  })
  afterAll(async () => {
    await test?.close()
    await redis?.stop()
  })

  async function issue(): Promise<void> {
    const issued = await issueCredential(test.core, actor, { backend: 'cache', scopes: ['read:shop'] })
    const { username, password } = issued.fields ?? {}
    known.push({ id: issued.id, login: { username: `${username}`, password: `${password}` }, revoked: 'no' })
  }

  async function revoke(one: Known): Promise<void> {
    one.revoked = 'asked'
    await revokeCredential(test.core, actor, one.id)
    one.revoked = 'done'
  }

  async function client(stop: () => boolean): Promise<void> {
    while (!stop()) {
      const alive = known.filter(({ revoked }) => revoked === 'no')
      const some = alive.length > FEWEST ? alive[0] : undefined
      try {
        await (Math.random() < 0.3 && some !== undefined ? revoke(some) : issue())
      } catch (error) {
        const isOutage = error instanceof Problem && /^backend_(unavailable|timeout)$/.test(error.code)
        if (!isOutage) unexpected.push(error)
        failed += 1
        // The breaker answers at once, and the next process takes a moment.
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }

  /** Later, so that every interrupted issue is looked for when it can no longer be under way. */
  async function settle(): Promise<void> {
    const sweeper = createSweeper(test.core)
    for (let round = 0; round < 6; round += 1) {
      test.advance(60_000)
      await sweeper.sweep(new AbortController().signal)
      await sweeper.idle()
    }
  }

  it(
    `loses nothing in ${KILLS} kills`,
    async () => {
      let isOver = false
      const clients = Array.from({ length: CLIENTS }, () => client(() => isOver))
      for (let kills = 0; kills < KILLS; kills += 1) {
        const before = known.length
        const pids = await poll('it issues again', async () => {
          const running = await plugin.pids()
          return known.length >= before + PROGRESS && running.length > 0 && running
        })
        for (const pid of pids) process.kill(pid, 'SIGKILL')
        await poll('it has ended', async () => !(await plugin.pids()).some((pid) => pids.includes(pid)))
        // After a second crash in a row the host waits, longer each time; a reload, like an administrator's, does not.
        if (kills % 2 === 1) await reloadPlugin(test.core, LOCAL, plugin.kind.type)
      }
      isOver = true
      await Promise.all(clients)
      await settle()
      expect(unexpected).toEqual([])
      // Otherwise no kill met a call.
      expect(failed).toBeGreaterThan(0)
      await checkAll()
    },
    LONG ? 1_800_000 : 240_000,
  )

  async function checkAll(): Promise<void> {
    const users = new Set(await redis.users('go_'))
    const active = new Set<string>()
    for (const { id, login, revoked } of known) {
      const record = await test.core.store.credentials.find(id)
      if (revoked !== 'no') expect(record?.state, id).toBe('revoked')
      else {
        expect(record?.state, id).toBe('active')
        expect(await redis.canRead(login, 'shop'), id).toBe(true)
        active.add(login.username)
      }
    }
    // Neither the user of an issue that was interrupted, nor one that was revoked.
    expect([...users].sort()).toEqual([...active].sort())
    console.log(`${KILLS} kills: ${known.length} issued, ${active.size} alive, ${failed} calls failed`)
  }
})
