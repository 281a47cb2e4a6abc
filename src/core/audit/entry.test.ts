import { expect, test } from 'vitest'
import { lowestBodyAt, timeOfBody } from '../../domain/ids.ts'
import { createIdSource } from '../../keys/new-id.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { audit } from './entry.ts'

const START = Date.parse('2026-01-01T00:00:00Z')

/** A clock that goes on by one ms at each reading, as a real one does at some. */
function openTicking() {
  let time = START
  const now = () => {
    time += 1
    return time
  }
  const recorded: { id: string; at: number }[] = []
  const record = (entry: { id: string; at: number }) => recorded.push(entry)
  const core = { ids: createIdSource(now), store: { now, audit: { record } } }
  return { core: core as unknown as Core, now, recorded }
}

test('gives an entry one time: `since` and `until`, which look at the id, find it by the time it shows', () => {
  const { core, recorded } = openTicking()
  for (let n = 0; n < 10; n += 1) audit(core, SYSTEM, { action: 'agent.created' })
  for (const { id, at } of recorded) {
    expect(id >= lowestBodyAt(at)).toBe(true)
    expect(id < lowestBodyAt(at + 1)).toBe(true)
  }
})

test('gives the entries of one change the time that they were given, in their order', () => {
  const { core, now, recorded } = openTicking()
  const at = now()
  now()
  for (const action of ['enrollment.approved', 'agent.created'] as const) audit(core, SYSTEM, { action, at })
  expect(recorded.map((entry) => entry.at)).toEqual([at, at])
  expect(recorded.map(({ id }) => timeOfBody(id))).toEqual([at, at])
  expect(recorded.map(({ id }) => id)).toEqual(recorded.map(({ id }) => id).sort())
})
