import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { REASONS, refusalOf } from '../../src/proxy/rules/refusals.ts'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
const page = () => read('docs/explanation/proxy.md')

test('docs/explanation/proxy.md lists every refusal of the proxy with its status, and no other', () => {
  const rows = [...page().matchAll(/^\| `(proxy_\w+)` +\| (\d+) /gm)]
  const listed = Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)]))
  const known = Object.fromEntries(REASONS.map(refusalOf).map(({ code, status }) => [code, status]))
  expect(rows).toHaveLength(Object.keys(listed).length)
  expect(listed).toEqual(known)
})

test('docs/explanation/proxy.md lists every reason of the databases, and no other', () => {
  const [, after = ''] = page().split(/^\| Reason .*$/m)
  const listed = [...(after.split('\n\n')[0] ?? '').matchAll(/^\| `(\w+)`/gm)].map(([, reason]) => reason)
  // It is a type alone.
  const [, type = ''] =
    /type RefusalCode =([^\n]*(?:\n {2}\|[^\n]*)*)/.exec(read('src/proxy/databases/refusal.ts')) ?? []
  const known = [...type.matchAll(/'(\w+)'/g)].map(([, reason]) => reason)
  expect(known.length).toBeGreaterThan(0)
  expect(listed.sort()).toEqual(known.sort())
})

test('a refusal stands in XML as it is', () => {
  for (const { message } of REASONS.map(refusalOf)) expect(message).not.toMatch(/[<>&]/)
})
