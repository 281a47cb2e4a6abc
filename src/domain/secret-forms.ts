/** A form in which a text may stand in a message. */
export interface Form {
  readonly bytes: Buffer
  /** In base64: the characters just before and after hold some bits of the text, too. */
  readonly before: number
  readonly after: number
}

/** What is shorter would be found everywhere. */
const SHORTEST = 6
/** Nobody escapes every character, least of a long text: it would be six times as long. */
const LONGEST_ESCAPED = 256

/** The text as it is, also in UTF-16, in base64, and escaped for URLs, JSON and HTML. */
export function formsOf(unchecked: string): Form[] {
  const text = unchecked.toWellFormed()
  const forms = new Map<string, Form>()
  const add = (bytes: Buffer, before = 0, after = 0) => {
    if (bytes.length >= SHORTEST) forms.set(bytes.toString('latin1'), { bytes, before, after })
  }
  const bytes = Buffer.from(text)
  if (bytes.length < SHORTEST) return []
  const escaped = bytes.length > LONGEST_ESCAPED ? [] : fullyEscaped(text)
  for (const written of new Set([
    text,
    ...urlForms(text),
    ...jsonForms(text),
    ...htmlForms(text),
    ...escaped,
  ])) {
    add(Buffer.from(written))
  }
  // Without its last zero it stands in both byte orders.
  add(Buffer.from(text, 'utf16le').subarray(0, -1))
  for (const offset of [0, 1, 2]) {
    const bits = (offset + bytes.length) * 8
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    // Only characters that hold no bits of what stands before or behind.
    const inner = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(bits / 6))
    for (const form of [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]) {
      add(Buffer.from(form), offset === 0 ? 0 : 1, bits % 6 === 0 ? 0 : 1)
    }
  }
  return [...forms.values()]
}

/** For a part of a path segment: `:` and `@` stay, as clients leave them (RFC 3986 §3.3). */
export function escapeInPath(text: string): string {
  return encodeURIComponent(text).replaceAll('%3A', ':').replaceAll('%40', '@')
}

/** For the value of a parameter. */
export function escapeInQuery(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, escapeByte)
}

function escapeByte(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

function urlForms(text: string): string[] {
  const component = encodeURIComponent(text)
  const strict = escapeInQuery(text)
  const form = strict.replaceAll('~', '%7E')
  const upper = [component, strict, form, escapeInPath(text), encodeURI(text)]
  const written = upper.flatMap((one) => [one, one.replaceAll('%20', '+')])
  return written.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (one) => one.toLowerCase())])
}

function jsonForms(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1)
  const slashes = (one: string) => one.replaceAll('/', '\\/')
  const ascii = plain.replace(/[^\x20-\x7e]/g, escapeUnit)
  // As Go and Java write characters that could end a script.
  const careful = ascii.replace(/[<>&]/g, escapeUnit)
  const more = careful.replace(/[=']/g, escapeUnit)
  const written = [plain, ascii, careful, more].flatMap((one) => [one, slashes(one)])
  return written.flatMap((one) => [
    one,
    one.replace(/\\u[0-9a-f]{4}/g, (unit) => `\\u${unit.slice(2).toUpperCase()}`),
  ])
}

function fullyEscaped(text: string): string[] {
  const inUrl = Buffer.from(text).toString('latin1').split('').map(escapeByte).join('')
  const inJson = text.split('').map(escapeUnit).join('')
  return [inUrl, inUrl.toLowerCase(), inJson, inJson.toUpperCase().replaceAll('\\U', '\\u')]
}

function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function htmlForms(text: string): string[] {
  const basic = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return [
    basic,
    basic.replaceAll('"', '&quot;').replaceAll("'", '&#39;'),
    basic.replaceAll('"', '&#34;').replaceAll("'", '&#39;'),
    basic.replaceAll('"', '&quot;').replaceAll("'", '&#x27;'),
    basic.replaceAll('"', '&quot;').replaceAll("'", '&#x27;').replaceAll('/', '&#x2F;'),
  ]
}
