import { copyFile, cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { SCRIPTS } from '../../src/cli/completion/scripts.ts'
import { PROGRAMS } from '../../src/cli/programs.ts'
import { renderNotice } from '../notice.ts'
import { buildExecutable } from './executable.ts'
import { renderManPages } from './man.ts'
import { renderThirdParty } from './notices.ts'
import { renderSbom } from './sbom.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const COMPLETIONS = {
  'share/bash-completion/completions/mayfly': SCRIPTS.bash,
  'share/zsh/site-functions/_mayfly': SCRIPTS.zsh,
  'share/fish/vendor_completions.d/mayfly.fish': SCRIPTS.fish,
}
const DOCUMENTS = ['README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md']

/** Writes all that is installed below a prefix such as `/usr`; `work` is an empty directory. */
export async function writeTree(version: string, work: string, prefix: string): Promise<void> {
  const bin = join(prefix, 'bin')
  await mkdir(bin, { recursive: true })
  await buildExecutable(version, work, join(bin, 'mayfly'))
  // The names under which docker and terraform look for their helpers.
  for (const name of Object.keys(PROGRAMS)) await symlink('mayfly', join(bin, name))
  for (const [path, text] of Object.entries(COMPLETIONS)) await write(join(prefix, path), text)
  for (const { file, text } of await renderManPages(version))
    await write(join(prefix, 'share/man/man1', `${file}.gz`), await promisify(gzip)(text, { level: 9 }))
  const documents = join(prefix, 'share/doc/mayfly')
  await write(join(documents, 'NOTICE'), await renderNotice())
  await write(join(documents, 'THIRD-PARTY-LICENSES'), await renderThirdParty(work))
  await write(join(documents, 'sbom.cdx.json'), await renderSbom(version))
  for (const name of DOCUMENTS) await copyFile(join(ROOT, name), join(documents, name))
  for (const name of ['docs', 'integrations'])
    await cp(join(ROOT, name), join(documents, name), { recursive: true, filter: isNoSource })
}

/** The programs of the action are in its `dist`. */
const isNoSource = (path: string) => path !== join(ROOT, 'integrations/github-action/src')

async function write(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, content)
}
