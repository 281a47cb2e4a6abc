/** What runs tests: `node:test`, vitest and others have these functions, under names of their own. */
export interface Runner {
  describe(name: string, body: () => void): unknown
  it(name: string, body: () => Promise<void>): unknown
  /** Once, before the first test of its `describe`. */
  before(hook: () => Promise<void>): unknown
  after(hook: () => Promise<void>): unknown
}
