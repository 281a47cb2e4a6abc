import { realpathSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { installation } from '../../installation.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import type { Context } from '../frame/verb.ts'
import type { Session } from '../session/open.ts'
import { dataPath } from '../session/paths.ts'
import { writePrivateFile } from '../session/private-file.ts'
import { digest } from '../session/token-cache.ts'

/** Leads a later call, without today's flags and variables, to the same server and login. No secret. */
interface Way {
  readonly server?: string | undefined
  readonly profile: string | undefined
  readonly caFile: string | undefined
  readonly keychain: boolean
}

export function wayTo({ globals }: Context, { target, login }: Session): Way & { readonly server: string } {
  const { server, profileName, caFile } = target
  return {
    server: server.text,
    // --profile would keep the later call from the login in the environment, and from the identity there.
    profile: login?.from === 'environment' || login?.from === 'identity' ? undefined : profileName,
    caFile,
    keychain: globals.keychain !== false,
  }
}

/** The same as command line flags. */
export function wayFlags({ server, profile, caFile, keychain }: Way): string[] {
  return [
    ...(server === undefined ? [] : ['--server', server]),
    ...(profile === undefined ? [] : ['--profile', profile]),
    ...(caFile === undefined ? [] : ['--ca', caFile]),
    ...(keychain ? [] : ['--no-keychain']),
  ]
}

/**
 * `gpg.program` is a path without arguments, so each way gets a script of its own. Returns the script's path, which is
 * always the same for the same way.
 */
export async function writeSigningProgram(context: Context, session: Session): Promise<string> {
  const text = [
    '#!/bin/sh',
    '# git runs this to sign; made by "mayfly git setup".',
    `exec ${shellLine(callOf(context, session, ['sign']))} -- "$@"`,
    '',
  ].join('\n')
  const path = dataPath(context, `git-sign-${digest(text).slice(0, 8)}`)
  await writePrivateFile(path, text, 0o700)
  return path
}

/** The command line with which another program calls this verb, for the same server and login. */
export function callOf(context: Context, session: Session, words: readonly string[]): string[] {
  return [...ownCommand(context), ...words, ...wayFlags(wayTo(context, session))]
}

/** For `sh`. */
export const shellLine = (words: readonly string[]) => words.map(shellWord).join(' ')

/** How other programs call this command: by name if the PATH leads here, otherwise by its file. */
export function ownCommand({ env }: Pick<Surroundings, 'env'>): readonly string[] {
  const own = installation.command.at(-1) ?? ''
  const candidates = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, 'mayfly'))
  // Another program of this name earlier in the PATH would run instead of ours.
  const first = candidates.find(isFile)
  return first !== undefined && realpathSync(first) === realpathSync(own) ? ['mayfly'] : installation.command
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
