/** Public as `mayfly/plugin`: what an author of a kind needs. */
// biome-ignore lint/performance/noBarrelFile: one module for authors
export { Type } from 'typebox'
export * from '../backends/kind.ts'
export { type DefinedKind, defineKind, type KindDefinition } from './define-kind.ts'
export { servePlugin } from './serve-plugin.ts'
