import { expect, test } from 'vitest'
import { MayflyError } from '../../../../src/client/errors.ts'
import type { HealthReason } from '../../../../src/client/wire.ts'
import { failedAt, STEPS } from './preflight-steps.ts'

const refusal = (reason?: HealthReason) =>
  new MayflyError({ code: 'invalid_request', status: 400, message: 'It was not stored.', reason })

test('the reason of a refusal says how far it came', () => {
  const stepOf = (reason: HealthReason) => STEPS[failedAt(refusal(reason)) ?? -1]
  expect(stepOf('misconfigured')).toBe('Reads the configuration')
  expect(stepOf('refused')).toBe('Reaches the upstream')
  expect(stepOf('login_failed')).toBe('Logs in there')
  expect(stepOf('permission_missing')).toBe('Looks for what issuing needs')
})

test('an answer without a reason, as others than full administrators get, says nothing of steps', () => {
  expect(failedAt(refusal())).toBeUndefined()
  expect(failedAt(new Error('gone'))).toBeUndefined()
  expect(failedAt(undefined)).toBeUndefined()
  expect(failedAt(refusal('of a newer server' as HealthReason))).toBeUndefined()
})
