import { isId } from '../../domain/ids.ts'
import { BackendError } from '../kind.ts'
import type { Recipe } from './schema.ts'

const PREFIX = 'cred_'

/** The name upstream of a credential: 29 characters. */
export function nameOf({ naming }: Recipe, credentialId: string): string {
  if (!isId('credential', credentialId)) {
    throw new BackendError('misconfigured', 'The credential id is not well formed.')
  }
  return `${naming?.prefix ?? 'mf_'}${credentialId.slice(PREFIX.length)}`
}

/** The credential of a name of ours, `undefined` for any other name: only ours are ever ended. */
export function credentialOf({ naming }: Recipe, name: unknown): string | undefined {
  const prefix = naming?.prefix ?? 'mf_'
  if (typeof name !== 'string' || !name.startsWith(prefix)) return undefined
  const id = PREFIX + name.slice(prefix.length)
  return isId('credential', id) ? id : undefined
}
