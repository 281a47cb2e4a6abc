import { access, constants } from 'node:fs/promises'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError, usage } from '../frame/failure.ts'
import { flag, off, text, type ValuesOf } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { configFile, editConfig, type Scope } from '../git/config-file.ts'
import { parseGitHost } from '../git/host.ts'
import { identityOf } from '../git/identity.ts'
import {
  apply,
  hostSettings,
  type InForce,
  processSettings,
  readInForce,
  type Setting,
  signingSettings,
  takeAway,
} from '../git/settings.ts'
import { callOf, writeSigningProgram } from '../git/wrapper.ts'
import { openAgentSession } from '../session/open.ts'
import { REQUEST_OPTIONS, requestFlags } from '../tools/request.ts'

const WHERE = {
  local: flag('for this repository (the default)'),
  global: flag('for all repositories of this user'),
}

type Where = ValuesOf<typeof WHERE>

const SETUP_OPTIONS = {
  ...WHERE,
  process: flag('change no file, and print variables that set up one shell or process'),
  host: text('<host>', 'git server to authenticate to, such as git.example.com'),
  ...REQUEST_OPTIONS,
  noSign: off('do not change name, email and signing'),
}

type SetupOptions = ValuesOf<typeof SETUP_OPTIONS>

export const setup = defineVerb({
  description:
    'Makes git sign commits with the key of the agent, which stays on the server. With --host and --backend, git also gets its passwords for a server from a backend.',
  options: SETUP_OPTIONS,
  examples: {
    'mayfly git setup': 'sign commits in this repository as the agent',
    'mayfly git setup --host git.example.com --backend forge': 'also clone from and push to git.example.com',
    'eval "$(mayfly git setup --process --host git.example.com --backend forge)"':
      'for this shell only, without changing a file',
  },
  json: '{scope, signing: {name, email, key_id, program} or null, hosts: [{url, backend}], env?: {NAME: value} with --process}',
  exits: [3, 4, 5],
  run: async (context, options) => {
    if ([options.local, options.global, options.process].filter(Boolean).length > 1)
      throw usage(
        '--local, --global and --process are mutually exclusive.',
        'Give at most one; the default is --local.',
      )
    if ((options.host === undefined) !== (options.backend === undefined))
      throw usage('--host and --backend go together.', 'Give both or neither.')
    if (options.sign === false && options.host === undefined)
      throw usage('There is nothing to set up.', 'Omit --no-sign, or give --host and --backend.')
    // Before asking the server: outside a repository there is nothing to do.
    const file = options.process === true ? undefined : await configFile(context, scopeOf(options))
    const planned = await prepare(context, options)
    if (file === undefined) return printVariables(context, planned)
    await editConfig(context, file, (draft) => apply(draft, planned.settings))
    const { signing, hosts } = planned
    await context.out.show({ scope: scopeOf(options), signing: signing ?? null, hosts }, () =>
      describe(planned),
    )
  },
})

interface Setup {
  readonly settings: readonly Setting[]
  readonly signing: { name: string; email: string; key_id: string; program: string } | undefined
  readonly hosts: readonly { url: string; backend: string }[]
}

/** Asks the server and writes the program that git will run, without changing git's configuration. */
async function prepare(context: Context, options: SetupOptions): Promise<Setup> {
  const host = options.host === undefined ? undefined : parseGitHost(options.host)
  const session = await openAgentSession(context)
  const settings: Setting[] = []
  let signing: Setup['signing']
  if (options.sign !== false) {
    const identity = identityOf(await session.client.signingKey())
    const program = await writeSigningProgram(context, session)
    signing = { name: identity.name, email: identity.email, key_id: identity.keyId, program }
    settings.push(...signingSettings(identity, program))
  }
  if (host === undefined || options.backend === undefined) return { settings, signing, hosts: [] }
  await session.client.backend(options.backend)
  const command = callOf(context, session, ['git-credential'])
  settings.push(
    ...hostSettings(host, options.backend, [...command, '--host', host.url, ...requestFlags(options)]),
  )
  return { settings, signing, hosts: [{ url: host.url, backend: options.backend }] }
}

async function printVariables(context: Context, { settings, signing, hosts }: Setup): Promise<void> {
  const env = processSettings(settings, context.env['GIT_CONFIG_COUNT'])
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${shellWord(value)}`)
  if (context.out.isJson) await context.out.json({ scope: 'process', signing: signing ?? null, hosts, env })
  else await context.out.result(lines.join('\n'))
}

function describe({ signing, hosts }: Pick<Setup, 'signing' | 'hosts'>): string {
  return listing({
    'signs as': signing === undefined ? undefined : `${signing.name} <${signing.email}>`,
    key: signing?.key_id,
    ...Object.fromEntries(hosts.map(({ url, backend }) => [url, `credentials of ${backend}`])),
  })
}

export const status = defineVerb({
  description: 'Shows how git is set up in this directory.',
  examples: { 'mayfly git status': 'the signing identity, and the servers with credentials' },
  json: "{signing: {name, email, key_id, program, scope} or null, hosts: [{url, backend, scope}]}; scope is git's: local, global, command",
  run: async (context) => {
    const { signing, hosts } = await readInForce(context)
    if (signing === undefined && hosts.length === 0)
      throw new CliError('not_set_up', 'git is not set up here.', { hint: 'Run `mayfly git setup`.' })
    if (signing !== undefined) await requireProgram(signing.program)
    const shown = signing === undefined ? undefined : present(signing)
    await context.out.show({ signing: shown ?? null, hosts }, () => describe({ signing: shown, hosts }))
  },
})

function present({ keyId, ...rest }: NonNullable<InForce['signing']>) {
  return { ...rest, key_id: keyId }
}

async function requireProgram(program: string): Promise<void> {
  const isThere = await access(program, constants.X_OK).then(
    () => true,
    () => false,
  )
  if (!isThere)
    throw new CliError('program_missing', `git signs with ${program}, which does not exist.`, {
      hint: 'Run `mayfly git setup` again.',
    })
}

export const unset = defineVerb({
  description: 'Undoes "git setup" and restores the previous settings.',
  options: WHERE,
  examples: { 'mayfly git unset': 'git works in this repository as before' },
  json: '{scope, signing: true if it was set up, hosts: [url]}',
  run: async (context, options) => {
    if (options.local === true && options.global === true)
      throw usage('--local and --global are mutually exclusive.', 'Give at most one; the default is --local.')
    const file = await configFile(context, scopeOf(options))
    const taken = await editConfig(context, file, takeAway)
    if (!taken.signing && taken.hosts.length === 0)
      throw new CliError('not_set_up', 'git is not set up there.', { hint: 'See `mayfly git status`.' })
    await context.out.show({ scope: scopeOf(options), ...taken }, () =>
      listing({
        signing: taken.signing ? 'restored' : undefined,
        ...Object.fromEntries(taken.hosts.map((url) => [url, 'removed'])),
      }),
    )
  },
})

function scopeOf({ global }: Where): Scope {
  return global === true ? 'global' : 'local'
}
