import { MAX_JSON_DEPTH } from '../limits.ts'
import { invalid, type Problem } from '../problems.ts'

/** A cursor over the decoded body; `at` is the index of the next unread UTF-16 unit. */
interface Cursor {
  readonly text: string
  at: number
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const CLOSE_OBJECT = 0x7d

/** RFC 8259 §6. */
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * Reads a JSON text (RFC 8259) and builds its value in one pass. Throws `invalid_request`, whose message names a
 * position and never the input, for: a byte order mark, nesting deeper than `MAX_JSON_DEPTH`,
 * a repeated key (after unescaping) or named `__proto__`, `constructor` or `prototype`, NUL or a lone
 * surrogate in any text, a number beyond ±(2^53 - 1), and any departure from the grammar. `text` was decoded from valid UTF-8.
 */
export function parseStrictText(text: string): unknown {
  const cursor: Cursor = { text, at: 0 }
  if (cursor.text.charCodeAt(0) === 0xfeff) throw invalid('The body begins with a byte order mark.')
  const value = readValue(cursor, nextCode(cursor), 0)
  nextCode(cursor)
  if (cursor.at < cursor.text.length) throw malformed(cursor, 'has text after its end')
  return value
}

function malformed(cursor: Cursor, what = 'is not valid JSON'): Problem {
  return invalid(`The body ${what} at character ${cursor.at + 1}.`)
}

/** Skips white space (RFC 8259 §2) and returns the next unit without reading it; NaN at the end. */
function nextCode(cursor: Cursor): number {
  const { text } = cursor
  let code = text.charCodeAt(cursor.at)
  while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
    cursor.at += 1
    code = text.charCodeAt(cursor.at)
  }
  return code
}

/** `MAX_JSON_DEPTH` bounds the recursion; it is checked before reading a new level. */
function readValue(cursor: Cursor, code: number, depth: number): unknown {
  switch (code) {
    case QUOTE:
      return readString(cursor)
    case 0x7b:
      return readObject(cursor, depth + 1)
    case 0x5b:
      return readArray(cursor, depth + 1)
    case 0x74:
      return readWord(cursor, 'true', true)
    case 0x66:
      return readWord(cursor, 'false', false)
    case 0x6e:
      return readWord(cursor, 'null', null)
    default:
      return readNumber(cursor)
  }
}

function readObject(cursor: Cursor, depth: number): Record<string, unknown> {
  if (depth > MAX_JSON_DEPTH) throw malformed(cursor, `is nested deeper than ${MAX_JSON_DEPTH} levels`)
  const result: Record<string, unknown> = {}
  cursor.at += 1
  let code = nextCode(cursor)
  if (code === CLOSE_OBJECT) {
    cursor.at += 1
    return result
  }
  for (;;) {
    if (code !== QUOTE) throw malformed(cursor)
    const start = cursor.at
    const key = readString(cursor)
    // Assigning `__proto__` would set the prototype; the other two lead to it.
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') {
      cursor.at = start
      throw malformed(cursor, 'has a field name that is not allowed')
    }
    if (Object.hasOwn(result, key)) {
      cursor.at = start
      throw malformed(cursor, 'has the same field twice')
    }
    if (nextCode(cursor) !== COLON) throw malformed(cursor)
    cursor.at += 1
    result[key] = readValue(cursor, nextCode(cursor), depth)
    code = nextCode(cursor)
    if (code === COMMA) {
      cursor.at += 1
      code = nextCode(cursor)
    } else if (code === CLOSE_OBJECT) {
      cursor.at += 1
      return result
    } else throw malformed(cursor)
  }
}

function readArray(cursor: Cursor, depth: number): unknown[] {
  if (depth > MAX_JSON_DEPTH) throw malformed(cursor, `is nested deeper than ${MAX_JSON_DEPTH} levels`)
  const result: unknown[] = []
  cursor.at += 1
  let code = nextCode(cursor)
  if (code === CLOSE_ARRAY) {
    cursor.at += 1
    return result
  }
  for (;;) {
    result.push(readValue(cursor, code, depth))
    code = nextCode(cursor)
    if (code === COMMA) {
      cursor.at += 1
      code = nextCode(cursor)
    } else if (code === CLOSE_ARRAY) {
      cursor.at += 1
      return result
    } else throw malformed(cursor)
  }
}

function readString(cursor: Cursor): string {
  const { text } = cursor
  const start = cursor.at + 1
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      cursor.at = at + 1
      return text.slice(start, at)
    }
    if (code === BACKSLASH) return readEscaped(cursor, start, at)
    // Also false for NaN: the text ended inside the string.
    if (!(code >= 0x20)) {
      cursor.at = at
      throw malformed(cursor)
    }
    at += 1
  }
}

/** Reads a string from its first backslash on. Raw text has no lone surrogates: it came from UTF-8. */
function readEscaped(cursor: Cursor, start: number, firstBackslash: number): string {
  const { text } = cursor
  let result = text.slice(start, firstBackslash)
  let at = firstBackslash
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) break
    if (!(code >= 0x20)) {
      cursor.at = at
      throw malformed(cursor)
    }
    if (code !== BACKSLASH) {
      const from = at
      do at += 1
      while (isPlain(text.charCodeAt(at)))
      result += text.slice(from, at)
      continue
    }
    cursor.at = at
    if (text.charCodeAt(at + 1) === 0x75) {
      result += readUnicodeEscape(cursor, text.slice(at + 2, at + 6))
      at += 6
    } else {
      const plain = ESCAPES[text.charAt(at + 1)]
      if (plain === undefined) throw malformed(cursor)
      result += plain
      at += 2
    }
  }
  cursor.at = at + 1
  if (!result.isWellFormed()) throw malformed(cursor, 'has half of a surrogate pair in the text that ends')
  return result
}

function isPlain(code: number): boolean {
  return code >= 0x20 && code !== QUOTE && code !== BACKSLASH
}

function readUnicodeEscape(cursor: Cursor, hex: string): string {
  if (!/^[0-9A-Fa-f]{4}$/.test(hex)) throw malformed(cursor)
  // PostgreSQL's text refuses NUL, and C libraries stop at it.
  if (hex === '0000') throw malformed(cursor, 'has a NUL character')
  return String.fromCharCode(Number.parseInt(hex, 16))
}

function readWord<T>(cursor: Cursor, word: string, value: T): T {
  if (!cursor.text.startsWith(word, cursor.at)) throw malformed(cursor)
  cursor.at += word.length
  return value
}

function readNumber(cursor: Cursor): number {
  NUMBER.lastIndex = cursor.at
  const token = NUMBER.exec(cursor.text)?.[0]
  if (token === undefined) throw malformed(cursor)
  const value = Number(token)
  // Beyond 2^53 a double cannot hold every integer; `1e400` would be infinite.
  if (!(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) throw malformed(cursor, 'has a number that is too large')
  cursor.at += token.length
  return value
}
