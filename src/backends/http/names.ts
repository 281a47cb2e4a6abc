import { accountName, credentialOfAccount } from '../account-name.ts'
import type { Recipe } from './schema.ts'

/** The name upstream of a credential. */
export function nameOf({ naming }: Recipe, credentialId: string): string {
  return accountName(credentialId, naming?.prefix)
}

/** The credential of a name of ours, `undefined` for any other name. */
export function credentialOf({ naming }: Recipe, name: unknown): string | undefined {
  return credentialOfAccount(name, naming?.prefix)
}
