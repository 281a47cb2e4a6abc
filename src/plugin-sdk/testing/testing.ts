/** Public as `mayfly/plugin/testing`: what the tests of a kind need. */
// biome-ignore lint/performance/noBarrelFile: one module for authors
export { type Hold, never, newCredentialId, newRequest, type Tricks } from './open-kind.ts'
export type { Runner } from './runner.ts'
export { testKind, type Upstream } from './test-kind.ts'
