import { resolve } from 'node:path'
import { usage } from '../frame/failure.ts'
import { flag, text } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { callOf } from '../tools/call-line.ts'
import { heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { singleSecret } from '../tools/parts.ts'
import { scriptFor, writeProgram } from '../tools/program-file.ts'
import { REQUEST_OPTIONS, requestFlags, requestOf } from '../tools/request.ts'

export const verb = defineVerb({
  description:
    'Prints a token for a package registry and nothing else. pnpm runs a `tokenHelper`, the absolute path of a program without arguments: --install writes one. npm has no token helper; pass it the token in a variable.',
  options: {
    ...REQUEST_OPTIONS,
    install: text('<path>', 'write a program for `tokenHelper` of pnpm instead of printing a token'),
    registry: text('<url>', 'with --install: the registry in the printed line', {
      default: 'https://registry.npmjs.org/',
    }),
    bearer: flag('print "Bearer TOKEN", the form that every version of pnpm accepts'),
  },
  examples: [
    {
      command:
        'mayfly npm-token --backend packages --registry https://npm.example.com/ --install ~/.local/bin/npm-token >> ~/.npmrc',
      about: 'make pnpm get its tokens from the backend',
    },
    {
      command: 'NPM_TOKEN=$(mayfly npm-token --backend packages) npm publish',
      about: 'npm, with //npm.example.com/:_authToken=$NPM_TOKEN in .npmrc (with braces around the name)',
    },
  ],
  json: 'with --install {path, registry, line}; otherwise the bare token, with or without --json',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const request = requestOf(options)
    const session = await openAgentSession(context)
    if (options.install !== undefined) {
      const path = programPath(resolve(context.cwd, options.install))
      const registry = registryKey(options.registry ?? '')
      // Up to pnpm 10 the helper prints the whole header; later versions accept that too.
      const words = ['npm-token', '--bearer', ...requestFlags(options)]
      await writeProgram(path, scriptFor('"mayfly npm-token --install"', callOf(context, session, words)))
      const line = `${registry}:tokenHelper=${path}`
      await context.out.show({ path, registry, line }, () => line)
      if (!context.out.isJson) context.out.note('Add this line to the .npmrc in your home directory.')
      return
    }
    const toToken = (credential: HeldCredential) => singleSecret(credential, 'a package registry')
    const token = await heldAnswer(context, session, request, RENEW_BEFORE_MS.command, toToken)
    await context.out.result(options.bearer === true ? `Bearer ${token}` : token)
  },
})

/** Older versions of pnpm pass the path to a shell unquoted. */
function programPath(path: string): string {
  if (/^[A-Za-z0-9_/.@+-]+$/.test(path)) return path
  throw usage(
    'The path of --install contains a character that pnpm would misread.',
    'Use only letters, digits and ._-/@+.',
  )
}

/** The registry as `.npmrc` names it: without scheme, with a trailing slash. */
function registryKey(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw usage('--registry is not a URL.', 'Example: https://npm.example.com/.')
  return `//${url.host}${url.pathname.replace(/\/?$/, '/')}`
}
