import { CliError, EXIT, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { clientFor } from '../session/open.ts'
import { isPresent } from '../session/private-file.ts'
import { isSameServer } from '../session/server-address.ts'
import { readTarget, type Target } from '../session/session.ts'
import { audienceOf } from './ambient.ts'
import type { IdentityAuth } from './auth.ts'
import { authFor, expiryOf, forgetOthers } from './kept.ts'
import type { IdentitySource } from './source.ts'
import { findSource, SOURCES, sourceOf } from './sources.ts'

export interface Chosen {
  /** `auto`, the name of a source, or `file:PATH`. */
  readonly identity: string
  readonly audience: string | undefined
}

export interface IdentityLogin {
  readonly auth: IdentityAuth
  readonly agent: { readonly id: string; readonly name: string }
  /** Of the access token, RFC 3339. */
  readonly expires: string | undefined
  /** Whether the file could be written; without it, each command logs in by itself. */
  readonly isKept: boolean
}

/** Logs in with the identity that a person has chosen, and keeps that for the job. Throws `CliError`, or as the client does. */
export async function logInAs(context: Context, target: Target, chosen: Chosen): Promise<IdentityLogin> {
  if (target.profileFrom === 'flag')
    throw usage('A login by an identity is in no profile.', 'Leave out --profile.')
  const audience = chosen.audience ?? audienceOf(target)
  if (audience === undefined)
    throw usage(
      'The token must be for the address of the server, which is not known here.',
      'Name the server with --server or MAYFLY_SERVER, or the audience with --audience.',
    )
  if (!/^[\x21-\x7e]{1,1000}$/.test(audience)) throw usage('--audience must be text without white space.')
  const source = await choose(context, chosen.identity)
  const auth = authFor(context, target.server.text, source, audience)
  // A login anew, with the scopes of today. What it replaces ends by itself.
  await auth.tokens.save(undefined)
  const client = await clientFor(context, { ...target, profile: undefined }, auth)
  await forgetOthers(context, target.server.text, auth)
  const { id, name } = await client.status()
  const [token, isKept] = await Promise.all([auth.tokens.load(), isPresent(auth.file)])
  return { auth, agent: { id, name }, expires: token && expiryOf(token), isKept }
}

async function choose(context: Context, name: string): Promise<IdentitySource> {
  if (name !== 'auto') {
    const source = sourceOf(context, name)
    if (source !== undefined) return source
    throw usage(
      `There is no identity ${JSON.stringify(name.slice(0, 80))}.`,
      `Use auto, ${SOURCES.map((one) => one.name).join(', ')} or file:PATH.`,
    )
  }
  const found = await findSource(context)
  if (found !== undefined) return found
  const needs = SOURCES.map((one) => `${one.title} (${one.needs})`).join('; ')
  throw new CliError('no_identity', `No identity was found here. Looked for: ${needs}.`, {
    exit: EXIT.unauthenticated,
    hint: 'Name a file with --identity file:PATH, or use `mayfly enroll` or `mayfly login`.',
  })
}

/** Says after a login that commands without flags use another one, or another server. */
export async function noteOtherLogin(context: Context, { server }: Target): Promise<void> {
  const next = await readTarget({ ...context, globals: {} })
  const isHere = isSameServer(next.server.text, server.text)
  if (next.variable?.isUsed === true && isHere)
    context.out.note(`${next.variable.name} is set and takes precedence over this login. Unset it.`)
  else if (next.profileFrom === 'environment')
    context.out.note('MAYFLY_PROFILE is set and takes precedence over this login. Unset it.')
  else if (!isHere) context.out.note(`Other commands use it with: --server ${server.text}`)
  else if (next.profile?.login !== undefined)
    context.out.note(
      `The profile ${next.profileName} has a login, which takes precedence over this one. Remove it with \`mayfly profile rm ${next.profileName}\`.`,
    )
}
