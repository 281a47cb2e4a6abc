import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newAgent } from '../../../test/support/store.ts'
import type { AgentGrant } from '../../domain/agent.ts'
import { coversAny } from '../../domain/scope.ts'
import { heldScopes } from '../held-scopes.ts'
import { checkScopeChanges, planScopes, type ScopeChanges, stillHeld } from './plan-scopes.ts'

const grant = (scopes: readonly string[], expiresAt: number | null = null): AgentGrant => ({
  id: scopes.join(),
  agentId: 'ag_1',
  scopes,
  createdAt: 1,
  expiresAt,
})
const holding = (scopes: readonly string[], ...grants: AgentGrant[]) => ({
  agent: newAgent({ scopes }),
  grants,
})

describe('the scopes of an agent after a change', () => {
  it.each<[string, ReturnType<typeof holding>, ScopeChanges, object]>([
    ['adds', holding(['a']), { add_scopes: ['b', 'b'] }, { scopes: ['a', 'b'], added: ['b'], removed: [] }],
    [
      'adds nothing that is held',
      holding(['a']),
      { add_scopes: ['a:x'] },
      { scopes: ['a', 'a:x'], added: [] },
    ],
    ['removes', holding(['a', 'b']), { remove_scopes: ['b'] }, { scopes: ['a'], removed: ['b'], added: [] }],
    [
      'removes from an extra grant, too',
      holding(['a', 'b'], grant(['b', 'c']), grant(['b'])),
      { remove_scopes: ['b'] },
      { scopes: ['a'], grants: [{ scopes: ['c'] }], removed: ['b'] },
    ],
    [
      'replaces all, extra grants included',
      holding(['a'], grant(['b'], 9), grant(['c'])),
      { scopes: ['c', 'd'] },
      { scopes: ['c', 'd'], grants: [], added: ['d'], removed: ['a', 'b'] },
    ],
    [
      'makes a time-limited scope permanent, which counts as granting it',
      holding([], grant(['b'], 9)),
      { add_scopes: ['b'] },
      { scopes: ['b'], grants: [{ scopes: ['b'] }], added: ['b'], removed: [] },
    ],
    [
      'takes all',
      holding(['a'], grant(['b'])),
      { scopes: [] },
      { scopes: [], grants: [], removed: ['a', 'b'] },
    ],
  ])('%s', (_, before, changes, expected) => {
    expect(planScopes(before, changes)).toMatchObject(expected)
  })

  it('says which removed scopes a wider one still grants', () => {
    const plan = planScopes(holding(['shop', 'shop:read', 'x']), { remove_scopes: ['shop:read', 'x'] })
    expect(stillHeld(plan)).toEqual(['The agent still holds "shop:read", because it holds "shop".'])
  })

  it.each<[string, ScopeChanges]>([
    ['a replacement beside additions', { scopes: ['a'], add_scopes: ['b'] }],
    ['a replacement beside removals', { scopes: ['a'], remove_scopes: ['b'] }],
    ['a scope that is added and removed', { add_scopes: ['a'], remove_scopes: ['a'] }],
    ['a scope that is none', { add_scopes: ['a:'] }],
    ['65 scopes', { scopes: Array.from({ length: 65 }, (_, n) => `a${n}`) }],
  ])('refuses %s', (_, changes) => {
    expect(() => checkScopeChanges(changes)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  it.each<[string, readonly string[], ScopeChanges]>([
    ['removing what is not held', ['a'], { remove_scopes: ['b'] }],
    ['removing a part of what is held', ['a'], { remove_scopes: ['a:read'] }],
    ['adding a 65th scope', Array.from({ length: 64 }, (_, n) => `a${n}`), { add_scopes: ['b'] }],
  ])('refuses %s', (_, scopes, changes) => {
    expect(() => planScopes(holding(scopes), changes)).toThrow(
      expect.objectContaining({ code: 'invalid_request' }),
    )
  })

  it('gives only what is named as added, and nothing back that is named as removed', () => {
    const scope = fc.constantFrom('a', 'a:x', 'a:y', 'b', 'b:x', '*', 'c*')
    const some = fc.uniqueArray(scope, { maxLength: 4 })
    fc.assert(
      fc.property(some, some, some, some, (own, extra, add, remove) => {
        const before = holding(own, ...(extra.length === 0 ? [] : [grant(extra)]))
        const held = heldScopes(before.agent, before.grants)
        const changes = {
          add_scopes: add.filter((one) => !remove.includes(one)),
          remove_scopes: remove.filter((one) => held.includes(one)),
        }
        const plan = planScopes(before, changes)
        const after = heldScopes(plan, plan.grants)
        for (const one of after) expect(coversAny([...held, ...plan.added], one)).toBe(true)
        for (const one of changes.remove_scopes) expect(after).not.toContain(one)
      }),
    )
  })
})
