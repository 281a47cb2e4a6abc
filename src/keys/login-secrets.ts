import { randomBytes } from 'node:crypto'

/**
 * The secrets of people's logins, each a prefix and 256 random bits: what the cookie of a session holds (`mfs_`), the key
 * that its page holds (`mfk_`), and what a link carries in its fragment (`mfl_`).
 */
const PREFIX = { session: 'mfs_', key: 'mfk_', link: 'mfl_' } as const

export type LoginSecret = keyof typeof PREFIX

const FORMS = Object.fromEntries(
  Object.entries(PREFIX).map(([kind, prefix]) => [kind, new RegExp(`^${prefix}[0-9a-f]{64}$`)]),
) as Record<LoginSecret, RegExp>

export function mintLoginSecret(kind: LoginSecret): string {
  return PREFIX[kind] + randomBytes(32).toString('hex')
}

export function isLoginSecret(kind: LoginSecret, text: string): boolean {
  return text.length === 68 && FORMS[kind].test(text)
}
