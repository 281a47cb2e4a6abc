/** A nullable column that holds JSON. */
export function encodeJson(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value)
}

/** The type is the caller's claim: only this program writes these columns. */
export function decodeJson<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T)
}
