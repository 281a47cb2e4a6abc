// biome-ignore lint/performance/noBarrelFile: tests need it beside the contract
export * from '../../src/plugin-sdk/testing/open-kind.ts'
