/**
 * Text that a stranger wrote: a name, a reason, metadata, the name of a browser. React shows markup as text; what is left are
 * characters that change how other text looks. Control characters, line and paragraph separators, and all that turn the direction
 * of text (Unicode TR36 §2.9, "Bidirectional text spoofing") or show nothing are shown by their number.
 */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|[\u115f\u1160\u3164\uffa0]|[\ufe00-\ufe0d]/gu

export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (one) => `⟨U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
}

/** At most `most` characters, never half of one. */
export function cut(text: string, most: number): { readonly text: string; readonly isCut: boolean } {
  const all = [...text]
  return all.length <= most ? { text, isCut: false } : { text: all.slice(0, most).join(''), isCut: true }
}
