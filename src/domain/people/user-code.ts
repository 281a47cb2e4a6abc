/**
 * Capitals and digits without vowels and look-alikes (RFC 8628 §6.1): 27^8 codes, which is more than 2^38. One is good for ten minutes,
 * for one of at most a thousand logins, and a person has ten tries a minute.
 */
export const USER_CODE_ALPHABET = '23456789BCDFGHJKMNPQRSTVWXZ'
export const USER_CODE_LENGTH = 8

const FORM = new RegExp(`^[${USER_CODE_ALPHABET}]{${USER_CODE_LENGTH}}$`)

/** What a person typed, as it was made: case, spaces and dashes do not count. Undefined: it is no code. */
export function readUserCode(typed: string): string | undefined {
  // Only ASCII: `toUpperCase` makes ASCII letters of some others.
  if (!/^[\x20-\x7e]*$/.test(typed)) return undefined
  const code = typed.replace(/[ -]/g, '').toUpperCase()
  return FORM.test(code) ? code : undefined
}

/** As it is shown: `XXXX-XXXX`. */
export const shownUserCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`
