import type { Context } from '../frame/verb.ts'
import { dataPath } from '../session/paths.ts'
import { writePrivateFile } from '../session/private-file.ts'
import type { Target } from '../session/session.ts'
import { digest } from '../session/token-cache.ts'
import { ownCommand, quote } from './own-command.ts'

/** Leads a later call, without today's flags and variables, to the same server and login. No secret. */
interface Way {
  readonly server: string
  readonly profile: string | undefined
  readonly caFile: string | undefined
  readonly keychain: boolean
}

export function wayTo({ globals }: Context, target: Target): Way {
  const { server, profile, profileName, profileFrom, caFile } = target
  return {
    server: server.text,
    profile: profile !== undefined || profileFrom !== 'default' ? profileName : undefined,
    caFile,
    keychain: globals.keychain !== false,
  }
}

/** The same as command line flags. */
export function wayFlags({ server, profile, caFile, keychain }: Way): string[] {
  return [
    ...['--server', server],
    ...(profile === undefined ? [] : ['--profile', profile]),
    ...(caFile === undefined ? [] : ['--ca', caFile]),
    ...(keychain ? [] : ['--no-keychain']),
  ]
}

/**
 * `gpg.program` is a path without arguments, so each way gets a script of its own. Returns the script's path, which is
 * always the same for the same way.
 */
export async function writeSigningProgram(context: Context, way: Way): Promise<string> {
  const variables = [
    `MAYFLY_SERVER=${quote(way.server)}`,
    ...(way.profile === undefined ? [] : [`MAYFLY_PROFILE=${quote(way.profile)}`]),
    ...(way.caFile === undefined ? [] : [`MAYFLY_CA_FILE=${quote(way.caFile)}`]),
    ...(way.keychain ? [] : ['MAYFLY_KEYCHAIN=off']),
  ]
  const text = [
    '#!/bin/sh',
    '# git runs this to sign; made by "mayfly git setup".',
    `export ${variables.join(' ')}`,
    `exec ${[...ownCommand(context), 'sign'].map(quote).join(' ')} "$@"`,
    '',
  ].join('\n')
  const path = dataPath(context, `git-sign-${digest(text).slice(0, 8)}`)
  await writePrivateFile(path, text, 0o700)
  return path
}
