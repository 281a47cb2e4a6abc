import { setImmediate as endOfTurn, setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { atEndOfTurn } from './event-loop-turn.ts'

describe('atEndOfTurn', () => {
  it('holds what is ready until everything else of the turn is done, and lets it go in order', async () => {
    const order: string[] = []
    const held = ['first', 'second'].map((name) =>
      atEndOfTurn(Promise.resolve(name)).then((value) => order.push(value)),
    )
    for (let n = 0; n < 20; n += 1) await Promise.resolve()
    order.push('work of the turn')
    await Promise.all(held)
    expect(order).toEqual(['work of the turn', 'first', 'second'])
  })

  it('lets go of what became ready in a later turn at the end of that one', async () => {
    const gone: string[] = []
    const late = setTimeout(20, 'late')
    const held = [atEndOfTurn(Promise.resolve('early')), atEndOfTurn(late)].map((one) =>
      one.then((value) => gone.push(value)),
    )
    await held[0]
    expect(gone).toEqual(['early'])
    await held[1]
    expect(gone).toEqual(['early', 'late'])
  })

  it('does not hold more than 32', async () => {
    let gone = 0
    const held = Array.from({ length: 33 }, () => atEndOfTurn(Promise.resolve()).then(() => (gone += 1)))
    for (let n = 0; n < 20; n += 1) await Promise.resolve()
    expect(gone).toBe(32)
    await Promise.all(held)
  })

  it('does not hold a failure', async () => {
    const order: string[] = []
    const held = atEndOfTurn(Promise.reject(new Error('no'))).catch((error: Error) =>
      order.push(error.message),
    )
    await Promise.race([held, endOfTurn().then(() => order.push('end of turn'))])
    expect(order).toEqual(['no'])
  })
})
