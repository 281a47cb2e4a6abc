import { expect, it } from 'vitest'
import { signWebhook } from './sign.ts'

it('signs the published example of Standard Webhooks as its libraries do', () => {
  // libraries/javascript/src/webhook.test.ts, "sign function works", and the same in Python, Go and others.
  const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const signed = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1_614_265_330,
    payload: '{"test": 2432232314}',
  }
  expect(signWebhook(key, signed)).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})
