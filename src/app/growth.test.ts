import { expect, it } from 'vitest'
import { warnOfGrowth } from './growth.ts'

const WARNED = { issuer: 'https://mayfly.example.com', issueRate: undefined, retentionMs: 0 }

function warningsOf(given: Partial<Parameters<typeof warnOfGrowth>[0]>): string[] {
  const warnings: string[] = []
  warnOfGrowth({ ...WARNED, ...given }, {
    warn: (_facts: unknown, text?: string) => warnings.push(String(text)),
  } as never)
  return warnings
}

it('warns where neither a rate nor retention bounds what is stored', () => {
  expect(warningsOf({})).toEqual([expect.stringContaining('Set limits.issue_rate')])
})

it.each([
  { issueRate: { count: 100, perMs: 60_000 } },
  { retentionMs: 86_400_000 },
  { issuer: 'http://127.0.0.1:8620' },
])('warns of nothing with %j', (given) => {
  expect(warningsOf(given)).toEqual([])
})
