/** Throws for a credential without it: the kind and the use do not fit together. */
export function readField(fields: ReadonlyMap<string, string>, name: string): string {
  const value = fields.get(name)
  if (value === undefined) throw new Error(`the credential has no field "${name}"`)
  return value
}
