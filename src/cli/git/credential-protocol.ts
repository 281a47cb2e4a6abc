import { CliError } from '../frame/failure.ts'

/** What git asks or tells (gitcredentials(7)): `key=value` lines up to an empty one or the end. Lists are left out. */
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

/** The answer to `get`. Throws for a secret that the protocol cannot carry: a line break would begin another attribute. */
export function formatCredential({ username, password, expiresAt }: GitCredential): string {
  const broken = /[\r\n\0]/
  if (username === '' || password === '' || broken.test(username) || broken.test(password))
    throw new CliError('not_for_git', 'This credential has several lines or none: git cannot use it.', {
      hint: 'Name the backend of this git server with --backend.',
    })
  return `username=${username}\npassword=${password}\npassword_expiry_utc=${Math.floor(expiresAt / 1_000)}`
}

/** Tells git to ask nobody else: without a terminal the next one to be asked would be a prompt that waits for ever. */
export const QUIT = 'quit=1'
