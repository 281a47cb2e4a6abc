import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createScram } from './scram.ts'

/** RFC 7677 §3. PostgreSQL ignores the name in the exchange, so ours is empty, and the proof another one than there. */
const NONCE = 'rOprNGfwEbeRWgbNEkqO'
const FIRST = 'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096'

const open = () => createScram({ password: 'pencil', mechanisms: ['SCRAM-SHA-256'], nonce: NONCE })

test('answers the challenge of the RFC, and accepts the signature that belongs to it', async () => {
  const scram = open()
  expect(scram?.first).toBe(`n,,n=,r=${NONCE}`)
  const answer = await scram?.answer(FIRST)
  expect(answer).toMatch(
    /^c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj\)hNlF\$k0,p=[A-Za-z\d+/]{43}=$/,
  )
  expect(() => scram?.verify(`v=${'A'.repeat(43)}=`)).toThrow('a signature of the login that is wrong')
})

test.each([
  ['another nonce', FIRST.replace('rOpr', 'xOpr')],
  ['the same nonce', `r=${NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`],
  ['no salt', FIRST.replace('s=W22ZaJ0SNY7soEsUEjb6gQ==', 's=')],
  ['no rounds', FIRST.replace('i=4096', 'i=0')],
  ['endless rounds', FIRST.replace('i=4096', 'i=99999999')],
  ['a mandatory extension', `m=x,${FIRST}`],
  ['an error', 'e=other-error'],
  ['a long one', FIRST.replace('hvYD', 'x'.repeat(5_000))],
])('refuses a challenge with %s', async (_, challenge) => {
  await expect(open()?.answer(challenge)).rejects.toMatchObject({ code: 'upstream_protocol' })
})

test('refuses whatever a server says that is no challenge', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary' }), async (challenge) => {
      await expect(open()?.answer(challenge)).rejects.toMatchObject({ name: 'Refusal' })
      expect(() => open()?.verify(challenge)).toThrow()
    }),
  )
})

test('has no answer to other mechanisms', () => {
  expect(createScram({ password: 'pencil', mechanisms: ['SCRAM-SHA-256-PLUS', ''] })).toBeUndefined()
  expect(createScram({ password: 'pencil', mechanisms: [] })).toBeUndefined()
})
