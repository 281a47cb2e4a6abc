// biome-ignore lint/performance/noBarrelFile: tests need it beside the contract
export * from '../../src/plugin/testing/open-kind.ts'
