import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { renderManPages } from '../../scripts/package/man.ts'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/domain/fault.ts'
import { LONG } from '../support/long.ts'

const folder = await mkdtemp(join(tmpdir(), 'mayfly-manual-'))
afterAll(() => rm(folder, { recursive: true }))
const pages = await renderManPages('1.2.3')

/** The pages as `man` shows them on a terminal of 80 columns, and what it complains about. */
async function shown(...files: string[]): Promise<{ text: string; warnings: string }> {
  const paths = files.map((file) => join(folder, file))
  for (const [at, file] of files.entries())
    await writeFile(paths[at] ?? '', pages.find((page) => page.file === file)?.text ?? '')
  const env = { MANWIDTH: '80', LC_ALL: 'C.UTF-8', MANPAGER: 'cat', GROFF_NO_SGR: '1' }
  const { stdout, stderr } = spawnSync('man', ['--warnings', '--encoding=UTF-8', '--local-file', ...paths], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    encoding: 'utf8',
  })
  return { text: stdout.replace(/.[\b]/g, ''), warnings: stderr }
}

/** Those with the most kinds of text in them. */
const SAMPLE = ['mayfly.1', 'mayfly-server.1', 'mayfly-run.1', 'mayfly-get.1', 'mayfly-git-setup.1']

test('man shows the pages without a warning', async () => {
  const files = LONG ? pages.map(({ file }) => file) : SAMPLE
  const { text, warnings } = await shown(...files)
  expect(warnings).toBe('')
  expect(text.match(/^NAME$/gm)).toHaveLength(files.length)
})

test('the page of a verb holds what its --help says, as people type it', async () => {
  const { text } = await shown('mayfly-get.1')
  expect(text).toContain('mayfly-get - get a credential')
  expect(text).toContain('mayfly get [options] <backend>')
  expect(text).toContain('-t, --ttl <duration>'.replace('-t, ', ''))
  expect(text).toContain('eval "$(mayfly get reports -o env)"')
  expect(text).toContain('5      refused')
})

test('the page of the command lists the verbs, but none that only programs call', async () => {
  const { text } = await shown('mayfly.1')
  expect(text).toContain('agent create')
  expect(text).not.toContain('__complete')
})

const packaging = (name: string) => new URL(`../../packaging/${name}`, import.meta.url)

/** The server's reading of a configuration file; faults are one text. */
async function faultsOf(text: string): Promise<string> {
  const file = join(folder, 'mayfly.yaml')
  await writeFile(file, text)
  try {
    await loadConfig({ argv: { config: file }, env: {}, readFile })
    return ''
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ message }) => message).join('\n')
    throw error
  }
}

test('the server accepts the configuration of the package', async () => {
  expect(await faultsOf(await readFile(packaging('mayfly.yaml'), 'utf8'))).toBe('')
})

test('every example in a comment of the configuration is a setting', async () => {
  const text = await readFile(packaging('mayfly.yaml'), 'utf8')
  const examples = [...text.matchAll(/^#(\w+):/gm)].map(([, name]) => name)
  expect(examples).toContain('policies')
  // Without the files that it names, which do not exist here.
  const active = text.replace(/^#(?=\w+:| {2})/gm, '').replace(/^\w+_file: .*$/gm, '')
  expect(await faultsOf(active)).toBe('')
  expect(await faultsOf(active.replace('retention:', 'retentoin:'))).toContain('retentoin')
})
