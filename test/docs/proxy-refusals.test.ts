import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { REASONS, refusalOf } from '../../src/proxy/rules/refusals.ts'

const PAGE = fileURLToPath(new URL('../../docs/explanation/proxy.md', import.meta.url))

test('docs/explanation/proxy.md lists every refusal of the proxy with its status, and no other', () => {
  const rows = [...readFileSync(PAGE, 'utf8').matchAll(/^\| `(proxy_\w+)` +\| (\d+) /gm)]
  const listed = Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)]))
  const known = Object.fromEntries(REASONS.map(refusalOf).map(({ code, status }) => [code, status]))
  expect(rows).toHaveLength(Object.keys(listed).length)
  expect(listed).toEqual(known)
})
