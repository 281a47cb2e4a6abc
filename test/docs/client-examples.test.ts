import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../cli/support.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const page = await readFile(join(ROOT, 'docs/reference/client.md'), 'utf8')
const examples = [...page.matchAll(/^## (.*)$|^```ts\n([\s\S]*?)^```$/gm)].reduce<[string, string][]>(
  (found, [, title, code]) => {
    if (title !== undefined) found.push([title, ''])
    const last = found.at(-1)
    if (code !== undefined && last !== undefined) last[1] += code
    return found
  },
  [],
)
const runnable = examples.filter(([, code]) => code !== '')

let world: World
let folder: string
beforeAll(async () => {
  world = await startWorld()
  folder = await mkdtemp(join(tmpdir(), 'mayfly-examples-'))
  const client = join(ROOT, 'src/client/client.ts')
  for (const [index, [, code]] of runnable.entries())
    await writeFile(join(folder, `${index}.mts`), code.replaceAll('mayfly/client', client))
})
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await world.close()
})

test('there are examples', () => {
  expect(runnable.map(([title]) => title)).toEqual([
    'A credential',
    'Logging in',
    'Errors',
    'Listings',
    'For administrators',
  ])
})

// The compiler takes most of a minute on two busy cores.
test('they are what the types allow', { timeout: 300_000 }, async () => {
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      rewriteRelativeImportExtensions: false,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
    include: ['*.mts'],
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const told = await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch((error) => error)
  expect(told.stdout).toBe('')
})

test.each(runnable.map(([title, code], index) => [title, code, index] as const))(
  '%s',
  async (_, code, index) => {
    const { client_id, client_secret } = world.agent.oidc
    const env = {
      ...world.env,
      MAYFLY_CLIENT_ID: client_id,
      MAYFLY_CLIENT_SECRET: client_secret,
      AGENT_NAME: world.agent.name,
    }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(folder, `${index}.mts`)], {
      env,
    })
    const promised = [...code.matchAll(/\/\/ prints: (.*)$/gm)].flatMap(
      ([, text]) => text?.split(' | ') ?? [],
    )
    expect(promised.length).toBeGreaterThan(0)
    expect(stderr).toBe('')
    expect(stdout.trimEnd().split('\n')).toEqual(promised)
  },
)
