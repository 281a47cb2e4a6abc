import type { SigningKey } from '../../client/wire.ts'
import { unexpectedReply } from '../frame/failure.ts'

export interface Identity {
  readonly name: string
  readonly email: string
  readonly keyId: string
}

/** As a server of ours forms them: none can start an option or hold a line break. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const EMAIL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}@[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/
const KEY_ID = /^[0-9A-Fa-f]{16,40}$/

/** The name, address and key id of the reply. Throws `CliError` if one is malformed. */
export function identityOf({ name, email, key_id: keyId }: SigningKey): Identity {
  if (isText(name, NAME) && isText(email, EMAIL) && isText(keyId, KEY_ID)) return { name, email, keyId }
  throw unexpectedReply('The server sent a signing key with a malformed name, address or id.')
}

/** Only these: git runs the program that a setting such as `core.sshCommand` names. */
export function identitySettings({ name, email, keyId }: Identity): [key: string, value: string][] {
  return [
    ['user.name', name],
    ['user.email', email],
    ['user.signingkey', keyId],
    ['gpg.format', 'openpgp'],
    ['commit.gpgsign', 'true'],
  ]
}

/** A list would pass the form alone, as text. */
function isText(value: unknown, form: RegExp): boolean {
  return typeof value === 'string' && form.test(value)
}
