/** Controls, line and paragraph separators, and formats such as bidirectional overrides. Joiners stay: scripts need them. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}[\p{Cf}--[\u200c\u200d]]]/gv

/**
 * Text from outside as one line of at most `most` characters: without what starts a line, steers a terminal or a mail, or hides
 * from the reader.
 */
export function plainText(text: string, most: number): string {
  const line = text
    .slice(0, 4 * most)
    .replace(/[\r\n\t]+/g, ' ')
    .replace(STEERING, '\ufffd')
    .toWellFormed()
  const characters = [...line]
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : line
}
