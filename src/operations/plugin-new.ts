import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { CliError, usage } from '../cli/frame/failure.ts'
import { text } from '../cli/frame/options.ts'
import { defineVerb } from '../cli/frame/verb.ts'
import { shellWord } from '../domain/formats/shell-word.ts'
import { PLUGIN_NAME_PATTERN } from '../domain/plugin.ts'
import { installation } from '../installation.ts'
import { templateFiles } from './plugin/template.ts'

const TYPE = new RegExp(PLUGIN_NAME_PATTERN)

export const verb = defineVerb({
  description:
    'Makes a package with a kind in TypeScript, a test that runs the contract of kinds, and a README. Its `npm test` passes as it is. Needs no server.',
  arguments: [{ name: '<directory>', description: 'new or empty' }],
  options: { name: text('<name>', 'of the kind; by default that of the directory, without mayfly-plugin-') },
  examples: {
    'mayfly plugin new mayfly-plugin-acme': 'the kind acme',
    'mayfly plugin new . --name acme': 'in this directory',
  },
  json: '{"directory", "name", "files": [path]}',
  run: async (context, options, given) => {
    const directory = resolve(context.cwd, given)
    const name = options.name ?? basename(directory).replace(/^mayfly-plugin-/, '')
    await requireName(name)
    await requireEmpty(directory, given)
    const files = templateFiles({ name, version: installation.version })
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, path)), { recursive: true })
      await writeFile(join(directory, path), text, { flag: 'wx' })
    }
    await context.out.report(
      { directory, name, files: Object.keys(files) },
      `Made a package with the kind ${name} in ${directory}.`,
    )
    if (!context.out.isJson) context.out.note(`Test it: cd ${shellWord(given)} && npm install && npm test`)
  },
})

async function requireName(name: string): Promise<void> {
  if (!TYPE.test(name))
    throw usage(
      `${JSON.stringify(name)} is no name of a kind: at most 40 lower-case letters, digits and hyphens, a letter first.`,
      'Name it: --name acme.',
    )
  const { builtInTypes } = await import('../app/recipes.ts')
  if (builtInTypes().has(name)) throw usage(`The kind ${name} is built in.`, 'Use another --name.')
}

async function requireEmpty(directory: string, given: string): Promise<void> {
  const found = await readdir(directory).catch((error: { code?: string }) => {
    if (error.code === 'ENOENT') return []
    throw new CliError('no_directory', `${given} cannot be used as a directory (${error.code}).`, {
      cause: error,
    })
  })
  if (found.length > 0)
    throw new CliError('not_empty', `The directory ${given} is not empty.`, {
      hint: 'Name one that is new or empty.',
    })
}
