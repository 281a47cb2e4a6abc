/** A placeholder for each secret field. Equal secrets have the same one, so that it does not matter which of them a client sends. */
export function placeholdersFor(
  secrets: ReadonlyMap<string, string>,
  placeholderFor: (field: string, secret: string) => string,
): ReadonlyMap<string, string> {
  const bySecret = new Map<string, string>()
  const placeholders = new Map<string, string>()
  // Named fields first: their names say more about the form.
  const fields = [...secrets].sort(([one], [other]) => Number(one === '') - Number(other === ''))
  for (const [field, secret] of fields) {
    const placeholder = bySecret.get(secret) ?? placeholderFor(field, secret)
    bySecret.set(secret, placeholder)
    placeholders.set(field, placeholder)
  }
  return placeholders
}
