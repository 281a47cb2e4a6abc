import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { openRedisBench, type RedisBench } from '../../../test/support/redis-kind.ts'
import type { Backend, Issued } from '../kind.ts'

let bench: RedisBench
beforeEach(async () => {
  bench = await openRedisBench()
})
afterEach(() => bench?.close())

const isThere = async ({ handle }: Issued) =>
  (await bench.call('ACL', 'GETUSER', String(handle?.['username']))) !== null
async function restart(): Promise<void> {
  await bench.halt()
  await bench.resume()
}

/** Issues by one backend, ends the credential by the other one, and restarts the server. */
async function isBackAfterRestart(issuing: Backend, revoking: Backend): Promise<boolean> {
  const issued = await issuing.issue(newRequest(['read']), never())
  // Any other one saves it, too.
  await (await bench.open({ persist: true })).issue(newRequest(['read']), never())
  await revoking.revoke?.(issued.handle ?? {}, never())
  await restart()
  return isThere(issued)
}

describe('a user of Redis that was saved into the ACL file', () => {
  it('stays away after a restart although "persist" was turned off while it lived', async () => {
    expect(await isBackAfterRestart(await bench.open({ persist: true }), await bench.open())).toBe(false)
  })

  it('stays away after a restart although another backend of the server saved it', async () => {
    const backend = await bench.open()
    expect(await isBackAfterRestart(backend, backend)).toBe(false)
  })

  it('stays away after a second restart, when it came back with the first one', async () => {
    await (await bench.open({ persist: true })).check(never())
    const backend = await bench.open()
    const issued = await backend.issue(newRequest(['read']), never())
    await (await bench.open({ persist: true })).check(never())
    await restart()
    expect(await isThere(issued)).toBe(true)
    await backend.revoke?.(issued.handle ?? {}, never())
    await restart()
    expect(await isThere(issued)).toBe(false)
  })

  it('needs the right to save for its end, which the check names', async () => {
    const backend = await bench.open()
    await bench.call('ACL', 'SETUSER', 'mayfly', '-acl|save')
    expect(await backend.check(never())).toEqual([])
    await bench.call('ACL', 'SETUSER', 'mayfly', '+acl|save')
    await (await bench.open({ persist: true })).check(never())
    await bench.call('ACL', 'SETUSER', 'mayfly', '-acl|save')
    await expect(backend.check(never())).rejects.toThrow('lacks +acl|save')
  })
})
