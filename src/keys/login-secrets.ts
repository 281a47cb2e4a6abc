import { randomBytes, randomInt } from 'node:crypto'
import { USER_CODE_ALPHABET, USER_CODE_LENGTH } from '../domain/people/user-code.ts'

/**
 * The secrets of people's logins, each a prefix and 256 random bits: what the cookie of a session holds (`mfs_`), the key
 * that its page holds (`mfk_`), and what a link carries in its fragment (`mfl_`); of a command its bearer (`mop_`), and
 * what it exchanges for that, a device code (`mdc_`) or an authorization code (`mac_`).
 */
const PREFIX = {
  session: 'mfs_',
  key: 'mfk_',
  link: 'mfl_',
  operator: 'mop_',
  device: 'mdc_',
  authorization: 'mac_',
} as const

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

/** What a person types; without the dash that is shown in its middle. */
export function mintUserCode(): string {
  const letters = Array.from({ length: USER_CODE_LENGTH }, () => randomInt(USER_CODE_ALPHABET.length))
  return letters.map((at) => USER_CODE_ALPHABET[at]).join('')
}
