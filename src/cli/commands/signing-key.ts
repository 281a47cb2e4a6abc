import { resolve } from 'node:path'
import type { SigningKey } from '../../client/wire.ts'
import { shellQuote } from '../../domain/formats/shell-word.ts'
import { usage } from '../frame/failure.ts'
import { flag, text, type ValuesOf } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import { identityOf, identitySettings } from '../git/identity.ts'
import { openAgentSession } from '../session/open.ts'
import { writePrivateFile } from '../session/private-file.ts'

const OPTIONS = {
  private: flag('print the private key instead'),
  exportTo: text('<file>', 'write the private key to a file that only you can read'),
  gitConfig: flag('print the git commands that configure the key'),
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    'Prints the public OpenPGP key that signs the commits of the agent. Reading the private key is recorded. ' +
    'To sign without taking the private key from the server, use `mayfly git setup`.',
  options: OPTIONS,
  examples: {
    'mayfly signing-key | gpg --import': 'let gpg verify its signatures',
    'mayfly signing-key --export-to key.asc': 'write the private key to a file (mode 0600)',
    'mayfly signing-key --git-config | sh': 'set name, e-mail and key in this repository',
  },
  json: '{key_id, name, email, public_key, git_config; private_key with --private; file with --export-to}',
  exits: [3, 4],
  run: async (context, options) => {
    if ([options.private, options.exportTo, options.gitConfig].filter(Boolean).length > 1)
      throw usage('--private, --export-to and --git-config are mutually exclusive.')
    const privateKey = options.private === true || options.exportTo !== undefined
    const key = await (await openAgentSession(context)).client.signingKey({ privateKey })
    const git_config = Object.fromEntries(identitySettings(identityOf(key)))
    const { private_key = '', ...rest } = key
    const open = { ...rest, git_config }
    if (options.exportTo !== undefined) {
      const file = resolve(context.cwd, options.exportTo)
      await writePrivateFile(file, private_key)
      await context.out.report({ ...open, file }, `The private key is in ${file}, which only you can read.`)
      return
    }
    const value = options.private === true ? { ...open, private_key } : open
    await context.out.show(value, () => textOf(key, git_config, options))
  },
})

function textOf(key: SigningKey, settings: Readonly<Record<string, string>>, options: Options): string {
  if (options.gitConfig === true)
    return Object.entries(settings)
      .map(([name, value]) => `git config ${shellQuote(name)} ${shellQuote(value)}`)
      .join('\n')
  return ((options.private === true ? key.private_key : undefined) ?? key.public_key).trimEnd()
}
