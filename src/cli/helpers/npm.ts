import { resolve } from 'node:path'
import { usage } from '../frame/failure.ts'
import { flag, text } from '../frame/options.ts'
import { RENEW_BEFORE_MS } from '../tools/held.ts'
import { singleSecret } from '../tools/parts.ts'
import { scriptFor, writeProgram } from '../tools/program-file.ts'
import { helperVerb } from './helper-verb.ts'

export const verb = helperVerb({
  name: 'npm',
  description:
    'Prints a token for a package registry and nothing else. pnpm runs a `tokenHelper`, the absolute path of a program without arguments: --write makes one. npm has no token helper; pass it the token in a variable.',
  options: {
    write: text('<path>', 'write a program for `tokenHelper` of pnpm instead of printing a token'),
    registry: text('<url>', 'with --write: the registry in the printed line', {
      default: 'https://registry.npmjs.org/',
    }),
    bearer: flag('print "Bearer TOKEN", the form that every version of pnpm accepts'),
  },
  examples: {
    'mayfly helper npm --backend packages --registry https://npm.example.com/ --write ~/.local/bin/npm-token >> ~/.npmrc':
      'make pnpm get its tokens from the backend',
    'NPM_TOKEN=$(mayfly helper npm --backend packages) npm publish':
      'npm, with //npm.example.com/:_authToken=$NPM_TOKEN in .npmrc (with braces around the name)',
  },
  json: 'with --write {path, registry, line}; otherwise the bare token, with or without --json',
  renewBeforeMs: RENEW_BEFORE_MS.command,
  answer:
    (_, { bearer }) =>
    (credential) => {
      const token = singleSecret(credential, 'a package registry')
      return bearer === true ? `Bearer ${token}` : token
    },
  configure: async ({ cwd, out }, call, options) => {
    const path = programPath(resolve(cwd, options.write ?? ''))
    const registry = registryKey(options.registry)
    // Up to pnpm 10 the helper prints the whole header; later versions accept that too.
    await writeProgram(path, scriptFor('"mayfly helper npm --write"', [...call, '--bearer']))
    const line = `${registry}:tokenHelper=${path}`
    await out.show({ path, registry, line }, () => line)
    if (!out.isJson) out.note('Add this line to the .npmrc in your home directory.')
  },
})

/** pnpm passes the path to a shell, unquoted. */
function programPath(path: string): string {
  if (/^[A-Za-z0-9_/.@+-]+$/.test(path)) return path
  throw usage(
    'The path of --write contains a character that pnpm would misread.',
    'Use only letters, digits and ._-/@+.',
  )
}

/** The name of a registry in `.npmrc`: without scheme, with a trailing slash. */
function registryKey(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw usage('--registry is not a URL.', 'Example: https://npm.example.com/.')
  return `//${url.host}${url.pathname.replace(/\/?$/, '/')}`
}
