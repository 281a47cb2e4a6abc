import { BackendError } from '../domain/backend-error.ts'
import { isId } from '../domain/ids.ts'

/** What the names of our accounts upstream begin with; `mf-` where the upstream takes no underscore. */
export type NamePrefix = 'mf_' | 'mf-'

const ID_PREFIX = 'cred_'

/** The name upstream of a credential: the prefix and the body of its id, 29 characters. Throws `BackendError`. */
export function accountName(credentialId: string, prefix: NamePrefix = 'mf_'): string {
  if (!isId('credential', credentialId)) {
    throw new BackendError('misconfigured', 'The credential id is not well formed.')
  }
  return `${prefix}${credentialId.slice(ID_PREFIX.length)}`
}

/** The credential of a name of ours, `undefined` for any other name: only ours are ever ended. */
export function credentialOfAccount(name: unknown, prefix: NamePrefix = 'mf_'): string | undefined {
  if (typeof name !== 'string' || !name.startsWith(prefix)) return undefined
  const id = ID_PREFIX + name.slice(prefix.length)
  return isId('credential', id) ? id : undefined
}

/** The account that a handle names. Throws `BackendError` for one that is not ours. `what` is for the message: "a user". */
export function accountIn(name: unknown, what: string, prefix?: NamePrefix): string {
  if (typeof name === 'string' && credentialOfAccount(name, prefix) !== undefined) return name
  throw new BackendError('misconfigured', `The handle does not name ${what} of Mayfly.`)
}
