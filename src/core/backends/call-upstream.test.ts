import { expect, it } from 'vitest'
import { createBreaker } from '../../backends/breaker.ts'
import type { Issued, Kind } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { createLogger } from '../../log/log.ts'
import type { Core } from '../context.ts'
import { askBackend } from '../credentials/ask-backend.ts'
import type { Granted } from '../credentials/issue-attempt.ts'
import { asProblem, enterUpstream } from './call-upstream.ts'
import { createHealth } from './health.ts'

const NOW = 1_800_000_000_000
const core = {
  settings: { upstreamTimeoutMs: 1_000 },
  store: { now: () => NOW },
  health: createHealth({ log: createLogger({ level: 'silent', format: 'json' }), now: () => NOW }),
} as Pick<Core, 'settings' | 'store' | 'backends' | 'health'>

/** What Mayfly makes of an answer of the kind. */
function answered(issued: Issued, upstream: boolean) {
  const backend = {
    name: 'db',
    type: 'fake',
    kind: { upstream } as Kind,
    breakers: { issuing: createBreaker(() => NOW), revoking: createBreaker(() => NOW) },
    connect: async () => ({ issue: async () => issued }),
  } as unknown as OpenBackend
  const holder = { agentId: 'ag_1', agentName: 'one' }
  const plan = { id: 'cred_1', scopes: [], params: {}, now: NOW, expiresAt: NOW + 60_000 }
  const attempt = { backend, holder, plan } as unknown as Granted
  return askBackend(core, attempt, upstream ? enterUpstream(backend, 'issuing') : undefined)
}

for (const upstream of [true, false]) {
  it.each<[string, Issued]>([
    ['neither secret nor fields', {}],
    ['an empty secret', { secret: '' }],
    ['an expiry that has passed', { secret: 's', upstreamExpiresAt: NOW }],
    ['an expiry that is not a time', { secret: 's', upstreamExpiresAt: Number.NaN }],
    ['an expiry with a fraction', { secret: 's', upstreamExpiresAt: NOW + 1.5 }],
  ])(
    `treats ${upstream ? 'an upstream' : 'a signature'} with %s as an error of the backend`,
    async (_, issued) => {
      await expect(answered(issued, upstream)).rejects.toMatchObject({ code: 'backend_error' })
    },
  )
}

it.each([
  ['of the kind', new BackendError('denied', 'It said no.', { detail: 'FATAL: hunter2' })],
  ['of the kind, in time', new BackendError('unavailable', 'It is away.', { detail: 'FATAL: hunter2' })],
  ['of a library', new Error('FATAL: hunter2')],
])('sends upstream text in an error %s to the log, not to the caller', (_, error) => {
  const problem = asProblem(error)
  expect(problem.message).not.toContain('hunter2')
  expect(problem.detail).toContain('FATAL: hunter2')
})

it('promises no more than the upstream, and reports an upstream that outlives the promise', async () => {
  const ends = async (upstreamExpiresAt?: number) => {
    const issued = { secret: 's', ...(upstreamExpiresAt === undefined ? {} : { upstreamExpiresAt }) }
    const signed = await answered(issued, true)
    return [signed.expiresAt - NOW, signed.upstreamExpiresAt]
  }
  expect(await ends()).toEqual([60_000, null])
  expect(await ends(NOW + 59_000)).toEqual([59_000, null])
  expect(await ends(NOW + 60_000)).toEqual([60_000, null])
  expect(await ends(NOW + 61_000)).toEqual([60_000, NOW + 61_000])
})
