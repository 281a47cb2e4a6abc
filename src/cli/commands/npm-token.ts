import { resolve } from 'node:path'
import { usage } from '../frame/failure.ts'
import { defineVerb } from '../frame/verb.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { callOf } from '../tools/call-line.ts'
import { heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { singleSecret } from '../tools/parts.ts'
import { scriptFor, writeProgram } from '../tools/program-file.ts'
import { REQUEST_OPTIONS, type RequestOptions, requestFlags, requestOf } from '../tools/request.ts'

interface Options extends RequestOptions {
  install?: string
  registry?: string
  bearer?: boolean
}

export const verb = defineVerb<Options>({
  description:
    'Prints a token for a package registry alone. pnpm runs a `tokenHelper`, which is the absolute path of a program without arguments: --install makes one. npm has no such thing; give it the token in a variable.',
  options: [
    ...REQUEST_OPTIONS,
    {
      flags: '--install <path>',
      description: 'write a program for `tokenHelper` of pnpm, and ask for no token',
    },
    {
      flags: '--registry <url>',
      description: 'with --install: the registry, for the line that is printed',
      default: 'https://registry.npmjs.org/',
    },
    { flags: '--bearer', description: 'print "Bearer TOKEN", the form that every pnpm understands' },
  ],
  examples: [
    {
      command:
        'mayfly npm-token --backend packages --registry https://npm.example.com/ --install ~/.local/bin/npm-token >> ~/.npmrc',
      about: 'pnpm gets its tokens from the backend',
    },
    {
      command: 'NPM_TOKEN=$(mayfly npm-token --backend packages) npm publish',
      about: 'npm, with //npm.example.com/:_authToken=$NPM_TOKEN in .npmrc (its name in braces)',
    },
  ],
  json: 'with --install {path, registry, line}; else the token alone, with or without --json',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const request = requestOf(options)
    const session = await openAgentSession(context)
    if (options.install !== undefined) {
      const path = programPath(resolve(context.cwd, options.install))
      const registry = registryKey(options.registry ?? '')
      // Up to pnpm 10 what the helper prints is the whole header; later ones take that too.
      const words = ['npm-token', '--bearer', ...requestFlags(options)]
      await writeProgram(
        path,
        scriptFor('"mayfly npm-token --install"', callOf(context, session.target, words)),
      )
      const line = `${registry}:tokenHelper=${path}`
      await context.out.show({ path, registry, line }, () => line)
      if (!context.out.isJson) context.out.note(`The line belongs into the .npmrc in your home directory.`)
      return
    }
    const toToken = (credential: HeldCredential) => singleSecret(credential, 'a package registry')
    const token = await heldAnswer(context, session, request, RENEW_BEFORE_MS.command, toToken)
    await context.out.result(options.bearer === true ? `Bearer ${token}` : token)
  },
})

/** Older versions of pnpm give it to a shell as it is. */
function programPath(path: string): string {
  if (/^[A-Za-z0-9_/.@+-]+$/.test(path)) return path
  throw usage(
    'The path of --install holds a character that pnpm would take for something else.',
    'Use letters, digits and ._-/@+ only.',
  )
}

/** As `.npmrc` names it: without its scheme, with a slash at its end. */
function registryKey(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw usage('--registry is no address.', 'Give it as https://npm.example.com/.')
  return `//${url.host}${url.pathname.replace(/\/?$/, '/')}`
}
