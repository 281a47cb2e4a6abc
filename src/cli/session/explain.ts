import { shellWord } from '../../domain/formats/shell-word.ts'
import { adminSocketOf } from '../../files/admin-socket.ts'
import { type Failure, failureOf, WITH_PROXY } from '../frame/failure.ts'
import { withGlobalFlags } from '../frame/global-flags.ts'
import { inOwnWords } from '../frame/own-words.ts'
import type { AnyVerb, Context } from '../frame/verb.ts'
import { type LastServer, readLastServer } from './last-server.ts'
import { DEFAULT_SERVER } from './server-address.ts'
import { readTarget, type Target } from './session.ts'

/**
 * Describes the failure of a verb in its own words, with what this user's settings and files say about it. The hint
 * repeats the options that lead to the server.
 */
export async function explain(context: Context, verb: AnyVerb, error: unknown): Promise<Failure> {
  const failure = await inWordsOf(context, verb, error)
  if (failure.hint === undefined) return failure
  const { code, message, exitCode } = failure
  const hint = await withGlobalFlags(failure.hint, context.globals, context.verbs)
  return { code, message, hint, exitCode }
}

async function inWordsOf(context: Context, verb: AnyVerb, error: unknown): Promise<Failure> {
  const failure = failureOf(error)
  const { name } = error as { name?: unknown }
  if (name !== 'MayflyError' && name !== 'UnreachableError') return failure
  const message = inOwnWords(failure.message, verb)
  // A message that names a parameter says itself what to do.
  if (/\?[a-z_]+=/.test(failure.message)) return { ...failure, message, hint: undefined }
  // The proxy is the first suspect.
  const { server } = error as { server?: unknown }
  if (typeof server === 'string' && server.endsWith(WITH_PROXY)) return { ...failure, message }
  const hint = await hintFor(context, verb, failure).catch(() => undefined)
  return { ...failure, message, hint: hint ?? failure.hint }
}

/** Undefined if these settings say nothing about it. */
async function hintFor(
  context: Context,
  verb: AnyVerb,
  { code, hint }: Failure,
): Promise<string | undefined> {
  switch (code) {
    case 'insufficient_scope':
      return verb.admin === true ? notAsAdministrator(await readTarget(context), hint) : undefined
    case 'unauthorized':
    case 'invalid_client':
    case 'invalid_token':
      return wrongVariable(await readTarget(context))
    case 'unreachable_refused':
    case 'unreachable_socket':
      return startAgain(context, await readTarget(context))
    default:
      return undefined
  }
}

function wrongVariable({ variable }: Target): string | undefined {
  if (variable?.isUsed !== true) return undefined
  return `${variable.name} is set and takes precedence over a stored login. Correct it, or unset it.`
}

/** The administrator of this machine's server would not expect to be an agent. */
function notAsAdministrator({ variable, server }: Target, hint: string | undefined): string | undefined {
  if (variable?.isUsed !== true) return undefined
  const other = server.isLocal ? 'the rights of a local administrator' : 'a stored login'
  const or = hint?.replace('Request it', 'Or request the scope')
  return `${variable.name} is set and takes precedence over ${other}: unset it. ${or ?? ''}`.trim()
}

async function startAgain(context: Context, target: Target): Promise<string | undefined> {
  if (!target.server.isLocal)
    return 'Check the address, and that the server runs. Name another with --server or MAYFLY_SERVER.'
  const last = await readLastServer(context)
  if (last === undefined || !isSame(last, target)) return undefined
  return `Start it with \`${commandOf(last)}\`, or give its address with --server or MAYFLY_SERVER.`
}

/** Without an address from the user, any server of theirs will do. */
function isSame({ dataDir, listen }: LastServer, { server, serverFrom }: Target): boolean {
  if (server.socketPath !== undefined) return server.socketPath === adminSocketOf(dataDir)
  return serverFrom === 'default' || new URL(server.url).port === portOf(listen)
}

const portOf = (address: string) => /:(\d+)$/.exec(address)?.[1] ?? ''

function commandOf({ dataDir, config, listen }: LastServer): string {
  return [
    'mayfly server',
    config === undefined ? '' : ` --config ${shellWord(config)}`,
    ` --data-dir ${shellWord(dataDir)}`,
    listen === new URL(DEFAULT_SERVER).host ? '' : ` --listen ${shellWord(listen)}`,
  ].join('')
}
