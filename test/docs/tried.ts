import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The pages of guides, operations and kinds take minutes to run. `npm test` runs those of a test file only if the file or one of its
 * pages has changed since the file last passed; `npm run test:long` runs them all. `tried.json` records what has passed.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const RECORD = join(ROOT, 'test/docs/tried.json')
const FOLDER = 'test/docs'
const PAGE_TESTS = /^(?:guide-[\w-]+|operations|backends)\.test\.ts$/

/** Test files that are left out while nothing has changed. */
export function triedFiles(): string[] {
  const record = readRecord()
  return pageTests().filter((file) => record[file] === hashOf(file))
}

function pageTests(): string[] {
  return readdirSync(join(ROOT, FOLDER))
    .filter((name) => PAGE_TESTS.test(name))
    .map((name) => `${FOLDER}/${name}`)
    .sort()
}

/** Covers the test file and each page that it names, or all pages of kinds if it names none. */
function hashOf(file: string): string {
  const text = read(file)
  const named = [...text.matchAll(/docs\/(?:guides|operations|reference|start)\/[\w-]+\.md/g)].map(
    ([path]) => path,
  )
  const pages =
    named.length > 0 ? named : readdirSync(join(ROOT, 'docs/backends')).map((name) => `docs/backends/${name}`)
  const hash = createHash('sha256').update(text)
  for (const page of [...new Set(pages)].sort()) hash.update(read(page))
  return hash.digest('hex').slice(0, 16)
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

function readRecord(): Record<string, string> {
  return JSON.parse(read('test/docs/tried.json')) as Record<string, string>
}

interface Module {
  readonly relativeModuleId: string
  readonly children: { allTests(): Iterable<{ result(): { readonly state: string } }> }
}

/** Each of its tests has run, and passed. */
function isWhole({ children }: Module): boolean {
  const states = [...children.allTests()].map((one) => one.result().state)
  return states.length > 0 && states.every((state) => state === 'passed')
}

/** A reporter of vitest: records the pages whose tests passed whole. */
export const recordTried = {
  onTestRunEnd(modules: readonly Module[]): void {
    const tests = new Set(pageTests())
    const passed = modules.filter((one) => tests.has(one.relativeModuleId) && isWhole(one))
    if (passed.length === 0) return
    const record = readRecord()
    for (const { relativeModuleId: file } of passed) record[file] = hashOf(file)
    writeFileSync(
      RECORD,
      `${JSON.stringify(Object.fromEntries(Object.entries(record).sort()), undefined, 2)}\n`,
    )
  },
}
