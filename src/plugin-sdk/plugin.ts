/** Public as `mayfly/plugin`: what an author of a kind needs. */
// biome-ignore lint/performance/noBarrelFile: one module for authors
export { Type } from 'typebox'
export * from '../backends/kind.ts'
export { BackendError, type Fault } from '../domain/backend-error.ts'
export type { FetchOptions } from '../egress/fetch.ts'
export { type DefinedKind, defineKind, type KindDefinition } from './define-kind.ts'
export { servePlugin } from './serve-plugin.ts'
