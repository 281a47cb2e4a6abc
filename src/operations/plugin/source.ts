import { readFile, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { MAX_ARTEFACT_BYTES } from '../../app/plugins/artefacts.ts'
import { CliError } from '../../cli/frame/failure.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { type Artefact, tooLarge } from './artefact.ts'

/** Reads `./file`, `https://…` or `npm:NAME@VERSION`. Throws `CliError`. */
export async function readSource(context: Context, source: string): Promise<Artefact> {
  if (source.startsWith('npm:')) {
    const { packFromNpm } = await import('./npm.ts')
    return packFromNpm(context, source.slice('npm:'.length))
  }
  if (/^https?:\/\//i.test(source)) {
    const { download } = await import('./download.ts')
    return download(context, source)
  }
  return readLocal(context, source)
}

async function readLocal({ cwd }: Context, source: string): Promise<Artefact> {
  const path = resolve(cwd, source)
  const facts = await stat(path).catch((error: { code?: string }) => {
    const why = error.code === 'ENOENT' ? 'does not exist' : `cannot be read (${error.code})`
    throw new CliError('no_file', `${source} ${why}.`, {
      hint: 'Give a file, an https:// address, or npm:NAME@VERSION.',
    })
  })
  if (!facts.isFile())
    throw new CliError('no_file', `${source} is not a file.`, {
      hint: 'Make one file of a package with `npm pack`, and give that.',
    })
  if (facts.size > MAX_ARTEFACT_BYTES) throw tooLarge(source)
  return { bytes: await readFile(path), origin: `file:${basename(path)}`, file: basename(path) }
}
