import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseKindTemplate } from '../project-file/template.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Issuance } from './issued-credentials.ts'
import { keepAlive } from './renew.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Issues credentials that live for a millisecond. */
function shortLived() {
  let issued = 0
  const obtain = async (): Promise<Issuance> => {
    issued += 1
    const now = Date.now()
    const times = {
      created_at: new Date(now).toISOString(),
      expires_at: new Date(now + 1).toISOString(),
    }
    const fields = { id: `cred_${issued}`, token: 'x', backend: 'demo', scopes: [], ttl: '1ms' }
    return { credential: { ...fields, ...times } as HeldCredential, askedAt: now, endsAt: now + 1 }
  }
  return { obtain, revoke: async () => true, count: () => issued }
}

test('renews at most once a second, however short the lives of the credentials are', async () => {
  const issued = shortLived()
  const file = { variable: 'F', fileName: 'F', content: { parts: [{ field: 'token' }] } }
  const requested = { name: 'demo', request: { backend: 'demo' }, isSpread: false, env: [], files: [file] }
  const over = new AbortController()
  const delivery = { requested, set: '0', issuance: await issued.obtain() }
  const options = { issued, now: Date.now, note: () => {}, place: async () => {} }
  const kept = keepAlive([delivery], options, over.signal)
  await vi.advanceTimersByTimeAsync(10_000)
  over.abort()
  await kept
  expect(issued.count()).toBe(11)
})

test.each([
  ['stays the same', '{ttl}', true],
  ['changes', '{id}', false],
])('renews beside a variable of the kind only if it %s', async (_, text, isRenewed) => {
  const issued = shortLived()
  const revoked: string[] = []
  const revoke = async (id: string) => revoked.push(id) > 0
  const file = { variable: 'F', fileName: 'F', content: { parts: [{ field: 'token' }] } }
  const env = [{ variable: 'A', value: parseKindTemplate(text), mayLast: true as const }]
  const requested = { name: 'demo', request: { backend: 'demo' }, isSpread: false, env, files: [file] }
  const over = new AbortController()
  const delivery = { requested, set: '0', issuance: await issued.obtain() }
  const notes: string[] = []
  const placed: string[] = []
  const options = {
    issued: { obtain: issued.obtain, revoke },
    now: Date.now,
    note: (line: string) => notes.push(line),
    place: async (_: unknown, { credential }: Issuance) => placed.push(credential.id),
  }
  const kept = keepAlive([delivery], options, over.signal)
  await vi.advanceTimersByTimeAsync(1_500)
  over.abort()
  await kept
  expect([placed, revoked]).toEqual(isRenewed ? [['cred_2'], ['cred_1']] : [[], ['cred_2']])
  expect(notes.some((line) => line.includes('has expired'))).toBe(!isRenewed)
})
