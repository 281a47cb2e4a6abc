import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeContract } from '../../src/plugin-sdk/testing/contract.ts'
import type { OpenKind } from '../../src/plugin-sdk/testing/open-kind.ts'

/** The contract of a kind, which authors of plugins run with `node --test`, by vitest. */
export function describeKind(name: string, open: () => Promise<OpenKind>): void {
  describeContract(name, open, { describe, it, before: beforeAll, after: afterAll })
}
