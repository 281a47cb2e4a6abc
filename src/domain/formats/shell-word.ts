/** One word for any POSIX shell, always in quotes. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** One word for any POSIX shell, in quotes only where it needs them. */
export function shellWord(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : shellQuote(text)
}
