import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { kinds } from '../../src/backends/index.ts'
import { covers, coversAny } from '../../src/domain/scope.ts'
import { MARK } from '../fuzz/values.ts'
import { LONG } from '../support/long.ts'
import { fillForm, hostileScopes, scopesOf } from '../support/scopes.ts'
import { kindOfType } from './rights.ts'
import { createRights, formsOf, type Rights, rightsOfKinds, titleOf } from './rights-of-kinds.ts'

const RUNS = LONG ? 2_000 : 150

it('knows the rights of every kind', () => {
  expect(new Set(rightsOfKinds.map(({ type }) => type))).toEqual(new Set(kinds.map(({ type }) => type)))
})

/** As core compares them: behind the name of a backend. */
const isCovered = (held: readonly string[], scope: string) => {
  const absolute = held.map((one) => `here:${one}`)
  return coversAny(absolute, `here:${scope}`)
}

/** Whether one of the rights is this one, or covers it: what is handed on as it is means what the grammar says. */
const includes = (rights: readonly string[], name: string) =>
  rights.includes(name) || rights.some((one) => covers(one, name))

const namesOf = (rights: Rights | undefined) => [...(rights?.keys() ?? [])]

describe.each(rightsOfKinds.map((of) => [titleOf(of), of] as const))('%s', (_, of) => {
  const { scopes: grammar } = kindOfType(of.type)
  const valid = scopesOf(formsOf(of), of.names).filter((scope) => grammar.valid(scope))
  const lists = fc.uniqueArray(valid, { minLength: 1, maxLength: 8 })
  let rightsOf: Awaited<ReturnType<typeof createRights>>
  beforeAll(async () => {
    rightsOf = await createRights(of)
  })

  it('gives something for every form, and nothing for nothing', async () => {
    const refused: string[] = []
    for (const form of formsOf(of)) {
      const scope = fillForm(form, of.names, ([first = '']) => first)
      if (namesOf(await rightsOf([scope])).length === 0) refused.push(scope)
    }
    expect(refused).toEqual(of.refused ?? [])
    expect(namesOf(await rightsOf([]))).toEqual([])
  })

  it('takes no hostile text for a scope', () => {
    const property = fc.property(hostileScopes(valid), (text) => !grammar.valid(text))
    fc.assert(property, { numRuns: RUNS })
  })

  it('repeats no scope that it refuses', async () => {
    for (const form of formsOf(of)) await rightsOf([fillForm(form, of.names, () => MARK)])
  })

  it('gives no right that none of its scopes permits, nor one that comes of their company', async () => {
    const property = fc.asyncProperty(lists, async (scopes) => {
      const together = await rightsOf(scopes)
      if (together === undefined) return
      const each = (await Promise.all(scopes.map((scope) => rightsOf([scope])))).flatMap(namesOf)
      const rights = [...together.values()]
      const unpermitted = rights.filter(({ by }) => !by.some((one) => isCovered(scopes, one)))
      const extra = namesOf(together).filter((name) => !each.includes(name))
      const lost = each.filter((name) => !includes(namesOf(together), name))
      expect({ unpermitted, extra, lost }).toEqual({ unpermitted: [], extra: [], lost: [] })
    })
    await fc.assert(property, { numRuns: RUNS })
  })

  it('gives a holder of a scope no more for a narrower one', async () => {
    const property = fc.asyncProperty(lists, lists, async (held, narrower) => {
      for (const wide of held) {
        const whole = await rightsOf([wide])
        if (whole === undefined) continue
        for (const scope of narrower.filter((one) => isCovered([wide], one))) {
          const beyond = namesOf(await rightsOf([scope])).filter(
            (name) => !includes(namesOf(whole), name) && of.reaches?.(wide, name) !== true,
          )
          expect({ wide, scope, beyond }).toEqual({ wide, scope, beyond: [] })
        }
      }
    })
    await fc.assert(property, { numRuns: RUNS })
  })
})
