/**
 * Characters that steer a terminal or hide from the reader: controls (C0, DEL, C1), line and paragraph separators, and
 * formats such as bidirectional overrides and tags. Joiners stay: scripts and emoji need them.
 */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}[\p{Cf}--[\u200c\u200d]]]/gv

/** The same, with the escape sequences that `paint` writes in front. */
const STEERING_OR_OWN = /\p{Cc}\[(?:0|1|2|31|32|33)m|[\p{Cc}\p{Zl}\p{Zp}[\p{Cf}--[\u200c\u200d]]]/gv

/** Text from others, safe for a terminal: keeps line breaks and tabs, and replaces every other steering character. */
export function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(STEERING, instead)
}

/** Our own text, made of parts that `oneLine` has passed: keeps the colours in it, too. */
export function painted(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(STEERING_OR_OWN, (found) => (found.startsWith('\x1b[') ? found : instead(found)))
}

const instead = (found: string) => (found === '\n' || found === '\t' ? found : '\ufffd')

/** Text for a cell or a line: without line breaks, too. */
export function oneLine(text: string): string {
  return plain(text).replace(/[\t\n]+/g, ' ')
}

/** JSON that is safe for a terminal: the same value, with every steering character as `\uXXXX`. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(STEERING, (found) =>
    found === '\n'
      ? found
      : found
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  )
}
