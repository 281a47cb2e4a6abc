import { misconfigured } from '../domain/backend-error.ts'
import { isId } from '../domain/ids.ts'
import type { Handle, Listed } from './kind.ts'

/** The prefix of our account names upstream; `mf-` if the upstream permits no underscore. */
export type NamePrefix = 'mf_' | 'mf-'

const ID_PREFIX = 'cred_'

/** The upstream name of a credential: the prefix and the body of its id, 29 characters. Throws `BackendError`. */
export function accountName(credentialId: string, prefix: NamePrefix = 'mf_'): string {
  if (!isId('credential', credentialId)) {
    throw misconfigured('The credential id is not well formed.')
  }
  return `${prefix}${credentialId.slice(ID_PREFIX.length)}`
}

/** The credential that one of our names belongs to, `undefined` for any other name: we never end others' accounts. */
function credentialOfAccount(name: unknown, prefix: NamePrefix): string | undefined {
  if (typeof name !== 'string' || !name.startsWith(prefix)) return undefined
  const id = ID_PREFIX + name.slice(prefix.length)
  return isId('credential', id) ? id : undefined
}

/** For kinds whose handles name one account: `field` has the name, and `what` is for the message: "a user". */
export function namedAccounts<F extends string>(field: F, what: string, prefix: NamePrefix = 'mf_') {
  const handleOf = (name: string) => ({ [field]: name }) as Readonly<Record<F, string>>
  return {
    nameOf: (credentialId: string) => accountName(credentialId, prefix),
    /** The account that a handle names. Throws `BackendError` for one that is not ours. */
    nameIn(handle: Handle): string {
      const name = handle[field]
      if (typeof name === 'string' && credentialOfAccount(name, prefix) !== undefined) return name
      throw misconfigured(`The handle does not name ${what} of Mayfly.`)
    },
    recover: (credentialId: string) => handleOf(accountName(credentialId, prefix)),
    /** An account of a list, in the form of `Backend.list`; nothing if it is not ours. */
    listed(name: unknown, expiresAt = Number.NaN): (Listed & { readonly handle: Record<F, string> })[] {
      const credentialId = credentialOfAccount(name, prefix)
      if (credentialId === undefined) return []
      const expiry = Number.isNaN(expiresAt) ? {} : { expiresAt }
      return [{ credentialId, handle: handleOf(String(name)), ...expiry }]
    },
  }
}
