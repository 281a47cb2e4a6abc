import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { ROUTES, type RouteRule } from '../../src/api/routes.ts'

/** Keeps the table of costs true: every route that strangers or agents may call is in it, with a test that exists. */
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const page = readFileSync(at('docs/explanation/request-costs.md'), 'utf8')

interface Row {
  readonly route: string
  readonly cost: string
  readonly bound: string
  readonly tests: readonly (readonly [file: string, name: string])[]
}

const rows: Row[] = page
  .split('\n')
  .filter((line) => /^\| `[A-Z]+ \//.test(line))
  .map((line) => {
    const [, route = '', cost = '', bound = '', tests = ''] = line.split('|').map((cell) => cell.trim())
    return {
      route: route.replaceAll('`', ''),
      cost,
      bound,
      tests: [...tests.matchAll(/`([^`]+\.test\.ts)` › (.+?)(?=; `|$)/g)].map(([, file = '', name = '']) => [
        file,
        name,
      ]),
    }
  })

it('has one row for every route that anybody or an agent may call', () => {
  const open = Object.entries(ROUTES as Record<string, RouteRule>).filter(
    ([, { access }]) => access !== 'admin',
  )
  expect(rows.map(({ route }) => route).sort()).toEqual(open.map(([route]) => route).sort())
})

it.each(rows)(
  'says what $route costs, what bounds it, and which test exceeds that',
  ({ cost, bound, tests }) => {
    expect(cost).toMatch(/^\d+(\.\d+)?$/)
    expect(bound.length).toBeGreaterThan(10)
    expect(tests.length).toBeGreaterThan(0)
    for (const [file, name] of tests) {
      expect(existsSync(at(file)), file).toBe(true)
      expect(readFileSync(at(file), 'utf8')).toContain(`'${name}'`)
    }
  },
)
