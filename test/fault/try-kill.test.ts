import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  addBackends,
  CREATES_ROLE,
  CREDENTIALS,
  must,
  openWorld,
  roleOf,
  type StoredCredential,
  startUpstream,
  type Upstream,
  untilSettled,
  type World,
} from '../support/fault-world.ts'
import { NoAnswer } from '../support/server-process.ts'
import { startTripwireProxy, type Tripwire, type TripwireProxy } from '../support/tripwire-proxy.ts'

/** When the server dies: the role is not committed, is there and unrecorded, or is recorded and about to be ended. */
const POINTS: readonly (readonly [what: string, wires: readonly Tripwire[], reason: string])[] = [
  ['before the role is there', [{ at: 'arrival', sees: [CREATES_ROLE, 'COMMIT'] }], 'interrupted'],
  ['before the role is recorded', [{ at: 'answered', sees: [CREATES_ROLE, 'COMMIT'] }], 'interrupted'],
  [
    'between issue and revoke',
    [
      { at: 'answered', sees: [CREATES_ROLE, 'COMMIT'] },
      { at: 'arrival', sees: ['NOLOGIN'] },
    ],
    'revoked',
  ],
]

let upstream: Upstream
let proxy: TripwireProxy
let world: World
beforeAll(async () => {
  upstream = await startUpstream()
  proxy = await startTripwireProxy(upstream.server)
  world = await openWorld({ flags: ['--upstream-timeout', '1s'] })
  await world.start()
  await addBackends(world.server(), upstream.config(proxy.port))
})
afterAll(async () => {
  await world.close()
  await proxy.close()
  await upstream.close()
})

/** Trips the wires one after the other, and kills the server at the last one. */
function arm([wire, ...rest]: readonly Tripwire[]): void {
  if (wire === undefined) return
  proxy.arm(wire, () => {
    if (rest.length === 0) {
      void world.server().kill()
      return
    }
    proxy.release()
    arm(rest)
  })
}

describe('kill -9 while a backend is tried', () => {
  test.each(POINTS)(
    '%s: the role is gone after the restart',
    { timeout: 60_000 },
    async (_what, wires, reason) => {
      const server = world.server()
      const before = (await world.rows<StoredCredential>(CREDENTIALS)).map(({ id }) => id)
      arm(wires)
      await expect(server.call(undefined, 'POST', '/v1/admin/backends/db/try', {})).rejects.toThrow(NoAnswer)
      expect(await server.ended).toEqual({ code: null, signal: 'SIGKILL' })
      proxy.release()
      await world.start()
      await untilSettled(world)
      const rows = await world.rows<StoredCredential>(CREDENTIALS)
      const left = rows.filter(({ id }) => !before.includes(id))
      expect(left).toMatchObject([{ agent_id: 'local', state: 'revoked', end_reason: reason }])
      expect(await upstream.roles()).not.toContain(roleOf(left[0]?.id ?? ''))
      // The next try finds nothing in its way.
      const tried = await must(world.server(), undefined, 'POST', '/v1/admin/backends/db/try', {})
      expect(tried['ended']).toBe(true)
    },
  )
})
