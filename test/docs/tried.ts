import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The pages of guides, operations and kinds are long to try. `npm test` tries one when its text or its test has changed since the
 * last run that passed, and `npm run test:long` tries all. `tried.json` keeps what was tried.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const RECORD = join(ROOT, 'test/docs/tried.json')
const FOLDER = 'test/docs'
const AT_ONCE = /^(?:guide-[\w-]+|operations|backends)\.test\.ts$/

/** Test files that are left out while nothing has changed. */
export function triedFiles(): string[] {
  const record = readRecord()
  return pageTests().filter((file) => record[file] === hashOf(file))
}

function pageTests(): string[] {
  return readdirSync(join(ROOT, FOLDER))
    .filter((name) => AT_ONCE.test(name))
    .map((name) => `${FOLDER}/${name}`)
    .sort()
}

/** Of the test and of each page that it names; of the whole folder where it names that alone. */
function hashOf(file: string): string {
  const text = read(file)
  const named = [...text.matchAll(/docs\/(?:guides|operations|reference)\/[\w-]+\.md/g)].map(([path]) => path)
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
