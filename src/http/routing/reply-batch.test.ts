import { setImmediate as endOfIteration } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createReplyBatch } from './reply-batch.ts'

describe('createReplyBatch', () => {
  const { hold } = createReplyBatch()

  it('holds replies until all other work of the iteration is done, and sends them in order', async () => {
    const order: string[] = []
    const held = ['first', 'second'].map((name) =>
      hold(Promise.resolve(name)).then((value) => order.push(value)),
    )
    for (let n = 0; n < 20; n += 1) await Promise.resolve()
    order.push('other work')
    await Promise.all(held)
    expect(order).toEqual(['other work', 'first', 'second'])
  })

  it('sends a reply of a later iteration at the end of that iteration', async () => {
    const gone: string[] = []
    const late = Promise.withResolvers<string>()
    const held = [hold(Promise.resolve('early')), hold(late.promise)].map((one) =>
      one.then((value) => gone.push(value)),
    )
    await held[0]
    expect(gone).toEqual(['early'])
    late.resolve('late')
    await held[1]
    expect(gone).toEqual(['early', 'late'])
  })

  it('holds at most 32 replies', async () => {
    let gone = 0
    const held = Array.from({ length: 33 }, () => hold(Promise.resolve()).then(() => (gone += 1)))
    for (let n = 0; n < 20; n += 1) await Promise.resolve()
    expect(gone).toBe(32)
    await Promise.all(held)
  })

  it('rejects at once', async () => {
    const order: string[] = []
    const held = hold(Promise.reject(new Error('no'))).catch((error: Error) => order.push(error.message))
    await Promise.race([held, endOfIteration().then(() => order.push('end of the iteration'))])
    expect(order).toEqual(['no'])
  })
})
