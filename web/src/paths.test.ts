import { expect, test } from 'vitest'
import { paths } from './paths.ts'

test('every address of the console, which never changes', () => {
  const odd = 'a/../b?c#d'
  expect(
    Object.fromEntries(
      Object.entries(paths).map(([name, path]) => [name, (path as (text?: string) => string)(path.length > 0 ? odd : undefined)]),
    ),
  ).toMatchInlineSnapshot()
  expect(paths.credentials({ agent: 'ci', backend: '' })).toBe('/console/credentials?agent=ci')
  expect(paths.activity({ credential: 'cred_1' })).toBe('/console/activity?credential=cred_1')
})
