import type { Live } from '../types.ts'

/** Throws for a credential without one: the kind and the use do not fit together. */
export function loginOf({ open, secrets }: Live): { readonly username: string; readonly password: string } {
  return { username: readField(open, 'username'), password: readField(secrets, 'password') }
}

function readField(fields: ReadonlyMap<string, string>, name: string): string {
  const value = fields.get(name)
  if (value === undefined) throw new Error(`the credential has no field "${name}"`)
  return value
}
