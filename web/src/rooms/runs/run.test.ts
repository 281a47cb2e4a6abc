import { expect, test } from 'vitest'
import { RUN_END_REASONS } from '../../../../src/domain/run.ts'
import { commandOf, queryOf } from './filters.tsx'
import { nextLook, nextLookOfAll, personOf, type Run, sentenceOf, wordOf } from './run.ts'

const NOW = Date.parse('2026-11-27T12:00:00Z')
const at = (seconds: number) => new Date(NOW + seconds * 1_000).toISOString()
const running = (beatSeconds: number, heartbeat: string, deadSeconds: number): Run =>
  ({ heartbeat, last_beat: at(beatSeconds), dead_at: at(deadSeconds) }) as Run
const ENDED = { heartbeat: '10s', last_beat: at(-60), dead_at: null } as Run

test.each([
  ['when its next beat is due', running(-4, '10s', 26), 6_000],
  ['soon, when a beat is late', running(-12, '10s', 18), 2_000],
  ['soon, when its clock is behind ours', running(-100, '10s', -70), 2_000],
  ['not more often than every two seconds', running(0, '1s', 3), 2_000],
  ['once a minute when it beats once an hour', running(0, '1h', 10_800), 60_000],
  ['never, once it has ended', ENDED, false],
  ['not before it is there', undefined, false],
] as const)('one run is read again %s', (_, run, ms) => {
  expect(nextLook(run, NOW)).toBe(ms)
})

test('a list is read again when the first of its runs would be dead, at most every five seconds', () => {
  expect(nextLookOfAll([running(-4, '10s', 26), ENDED, running(-10, '10s', 20)], NOW)).toBe(20_000)
  expect(nextLookOfAll([running(-4, '10s', 26), running(-2, '1s', 1)], NOW)).toBe(5_000)
  expect(nextLookOfAll([ENDED], NOW)).toBe(false)
  expect(nextLookOfAll([], NOW)).toBe(false)
})

test('each reason has a word and a sentence; one of a newer server is shown as it is', () => {
  for (const reason of RUN_END_REASONS) {
    expect(wordOf(reason)).not.toBe(reason.includes('_') ? reason : '')
    expect(sentenceOf(reason)).toMatch(/\.$/)
  }
  expect([wordOf('comet'), sentenceOf('comet')]).toEqual(['comet', 'comet'])
  expect(['operator:a@example.com', 'local', 'ag_1'].map(personOf)).toEqual([
    'a@example.com',
    'local administrator',
    'ag_1',
  ])
})

test('without a state the list, and its command, are of those that live', () => {
  const none = { agent: undefined, state: undefined }
  expect(queryOf(none)).toEqual({ state: 'running' })
  expect(queryOf({ agent: 'ci', state: 'any' })).toEqual({ agent: 'ci' })
  expect(queryOf({ ...none, state: 'ended' })).toEqual({ state: 'ended' })
  expect(commandOf(none)).toBe('mayfly runs ls --state running')
  expect(commandOf({ agent: "a'b", state: 'any' })).toBe(`mayfly runs ls --agent 'a'\\''b' --state all`)
})
