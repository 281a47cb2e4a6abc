import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Backend, Handle, Issued } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { type Hold, never, newRequest, type OpenKind } from './open-kind.ts'
import type { Runner } from './runner.ts'

/** A revocation takes effect within this time, whatever the holders of credentials do. */
const LONGEST_MS = 20_000
/** One whose own holder does nothing against it. */
const USUAL_MS = 5_000
/** As a server's `upstream_timeout`. */
const CALL_MS = 10_000
const PAUSE_MS = 100

/** A revocation is settled only when the kind has seen that the credential is dead. */
export function describeHolder({ it }: Runner, get: () => OpenKind): void {
  it('ends a credential for good, whatever its holder has done to keep it', async () => {
    const { backend, scopes, tricks = {} } = get()
    const kept: string[] = []
    for (const [name, take] of Object.entries(tricks)) {
      const issued = await backend.issue(newRequest(scopes), never())
      await using hold = await take(issued)
      assert.equal(await hold.works(), true, `${name}: it does not work before the revocation`)
      const failure = await endWithin(backend, issued.handle ?? {}, LONGEST_MS)
      if (failure !== undefined) kept.push(`${name}: not ended: ${failure.message}`)
      else if (await hold.works().catch(() => false)) kept.push(`${name}: works after its end`)
    }
    assert.deepEqual(kept, [])
  })

  it('ends another credential in its usual time while a holder does all of that at once', async () => {
    const { backend, probe, scopes, tricks = {} } = get()
    if (Object.keys(tricks).length === 0) return
    const [hostile, other] = [
      await backend.issue(newRequest(scopes), never()),
      await backend.issue(newRequest(scopes), never()),
    ]
    await using holds = await takeAll(get(), hostile)
    // The revocation of that holder, which may have to wait, must not make the other one wait.
    const ending = endWithin(backend, hostile.handle ?? {}, LONGEST_MS)
    assert.equal(await endWithin(backend, other.handle ?? {}, USUAL_MS), undefined)
    assert.equal(await probe.use(other).catch(() => false), false)
    assert.equal(await ending, undefined)
    assert.equal(await holds.works(), false)
  })

  it('takes no credential for ended only because the upstream says so', async () => {
    const { backend, probe, scopes, disarmed } = get()
    if (disarmed === undefined) return
    const { handle = {} } = await backend.issue(newRequest(scopes), never())
    const blunt = await disarmed()
    for (let round = 0; round < 2; round += 1) {
      await assert.rejects(async () => blunt.revoke?.(handle, AbortSignal.timeout(CALL_MS)), BackendError)
    }
    if (probe.exists !== undefined) assert.equal(await probe.exists(handle), true, 'it was ended after all')
    await blunt[Symbol.asyncDispose]()
    assert.equal(await endWithin(backend, handle, USUAL_MS), undefined)
  })
}

/** Tries again as a server does. Returns the last failure once the time is over. */
async function endWithin(backend: Backend, handle: Handle, ms: number): Promise<BackendError | undefined> {
  const deadline = performance.now() + ms
  for (;;) {
    const left = deadline - performance.now()
    try {
      await backend.revoke?.(handle, AbortSignal.timeout(Math.ceil(Math.max(1, Math.min(CALL_MS, left)))))
      return undefined
    } catch (error) {
      assert(error instanceof BackendError, String(error))
      if (left <= PAUSE_MS) return error
      await delay(PAUSE_MS)
    }
  }
}

async function takeAll({ tricks = {} }: OpenKind, issued: Issued): Promise<Hold> {
  const holds: Hold[] = []
  for (const take of Object.values(tricks)) holds.push(await take(issued))
  return {
    async works() {
      const each = await Promise.all(holds.map((hold) => hold.works().catch(() => false)))
      return each.includes(true)
    },
    async [Symbol.asyncDispose]() {
      for (const hold of holds) await hold[Symbol.asyncDispose]()
    },
  }
}
