import { CliError } from '../frame/failure.ts'

/** Parses git's request (gitcredentials(7)): `key=value` lines up to an empty line. Ignores lists. */
export function parseAttributes(text: string): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '' || line === '\r') break
    const at = line.indexOf('=')
    const key = line.slice(0, at)
    if (at > 0 && !key.endsWith('[]')) attributes.set(key, line.slice(at + 1))
  }
  return attributes
}

export interface GitCredential {
  readonly username: string
  readonly password: string
  /** Epoch ms. */
  readonly expiresAt: number
}

/** The answer to `get`. Throws for a secret with a line break, which would start another attribute. */
export function formatCredential({ username, password, expiresAt }: GitCredential): string {
  const broken = /[\r\n\0]/
  if (username === '' || password === '' || broken.test(username) || broken.test(password))
    throw new CliError('not_for_git', 'git cannot use this credential: it is empty or has several lines.', {
      hint: 'Choose the backend for this git server with --backend.',
    })
  return `username=${username}\npassword=${password}\npassword_expiry_utc=${Math.floor(expiresAt / 1_000)}`
}

/** Tells git to stop asking: without a terminal its next step is a prompt that waits forever. */
export const QUIT = 'quit=1'
