import { expect, test } from 'vitest'
import type { Agent } from '../../../../src/client/wire.ts'
import { NEVER } from '../../ui/lifetimes.tsx'
import { changesOf, EMPTY, formOf, newAgentOf } from './changes.ts'

const agent = {
  id: 'ag_1',
  name: 'ci',
  scopes: ['orders:read', 'payments:*'],
  created_at: '2026-11-26T12:00:00.000Z',
  last_used: null,
  expires_at: null,
  policy: null,
  owner: 'team-a',
  audiences: ['sts.amazonaws.com'],
} as Agent
const form = formOf(agent)

test('a form that nobody has touched changes nothing', () => {
  expect(changesOf(agent, form)).toBeUndefined()
  expect(
    changesOf(agent, { ...form, scopes: ' payments:*,\n\norders:read ', owner: 'team-a ' }),
  ).toBeUndefined()
})

test('scopes are added and taken one by one, so that those for a time are kept', () => {
  expect(changesOf(agent, { ...form, scopes: 'orders:read\nreports:x\nreports:x' })).toEqual({
    add_scopes: ['reports:x'],
    remove_scopes: ['payments:*'],
  })
})

test('what is emptied is taken away', () => {
  expect(changesOf({ ...agent, description: 'nightly' }, { ...form, owner: '', audiences: ' ' })).toEqual({
    owner: null,
    description: null,
    audiences: [],
  })
})

test('an end is counted from now, or there is none', () => {
  expect(changesOf(agent, { ...form, lifetime: '30d' })).toEqual({ expires_in: '30d' })
  expect(changesOf(agent, { ...form, lifetime: NEVER })).toEqual({ expires_at: null })
})

test('revoking what is not covered is a change by itself', () => {
  expect(changesOf(agent, { ...form, isRevoking: true })).toEqual({ revoke: true })
})

test('a new agent is sent with what was filled in', () => {
  expect(newAgentOf({ ...EMPTY, name: ' ci-2 ', scopes: 'orders:read' })).toEqual({
    name: 'ci-2',
    scopes: ['orders:read'],
  })
  expect(
    newAgentOf({
      ...EMPTY,
      name: 'ci-2',
      lifetime: '24h',
      owner: ' Bob ',
      description: 'x',
      audiences: 'https://a.example https://b.example',
    }),
  ).toEqual({
    name: 'ci-2',
    scopes: [],
    expires_in: '24h',
    owner: 'Bob',
    description: 'x',
    audiences: ['https://a.example', 'https://b.example'],
  })
})
