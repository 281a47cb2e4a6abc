import { expect, test } from 'vitest'
import { createRules } from '../../src/proxy/rules/decide.ts'
import { REASONS } from '../../src/proxy/rules/refusals.ts'
import { LONG } from '../support/long.ts'
import { createRandom, drawRequest } from './generated-requests.ts'
import { faultOf } from './naive-oracle.ts'
import * as w from './rules-world.ts'

const REQUESTS = LONG ? 200_000 : 20_000
const seed = Number(process.env['MAYFLY_SEED'] ?? Date.now() % 2 ** 31)

test(`of ${REQUESTS} requests none gets a secret where it must not be, and none fails (MAYFLY_SEED=${seed})`, () => {
  const rules = createRules(w.WORLD)
  const random = createRandom(seed)
  const faults: unknown[] = []
  const counts = new Map<string, number>()
  for (let number = 0; number < REQUESTS && faults.length < 5; number += 1) {
    const asked = drawRequest(random)
    const verdict = rules.decide(asked)
    const outcome = verdict.kind === 'refuse' ? verdict.reason : verdict.kind
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    if (verdict.kind === 'refuse') continue
    const sent = verdict.kind === 'inject' ? verdict.apply(w.liveOf(verdict.held)) : verdict.clean()
    const fault = 'reason' in sent ? sent.reason : faultOf(asked, { kind: verdict.kind, ...sent })
    if (fault !== undefined) faults.push({ number, fault, asked, sent })
  }
  expect(faults).toEqual([])
  // The requests reach every part of the decision.
  expect(counts.get('inject')).toBeGreaterThan(REQUESTS / 100)
  expect(counts.get('forward')).toBeGreaterThan(REQUESTS / 100)
  const reached = [
    'elsewhere',
    'misplaced',
    'bad_path',
    'bad_framing',
    'wrong_host',
    'denied',
    'path_not_allowed',
    'sign',
  ]
  expect(reached.filter((outcome) => (counts.get(outcome) ?? 0) < 10)).toEqual([])
  expect(
    [...counts.keys()]
      .filter((key) => !/^(?:inject|inject_body|forward|sign)$/.test(key))
      .every((key) => REASONS.some((reason) => reason === key)),
  ).toBe(true)
})
