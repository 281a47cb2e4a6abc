/** Shorter secrets would match by chance and make the output unreadable. */
export const SHORTEST_SECRET = 8
const REPLACEMENT = Buffer.from('[redacted]')

/** The secrets of a run, in every form searched for. More may be added while it runs. */
export interface Redaction {
  /** False when the secret is too short to search for. */
  add(secret: string): boolean
  /** A filter for one stream. */
  stream(): RedactedStream
}

export interface RedactedStream {
  /** Returns everything except a tail that may be the beginning of a secret. */
  push(chunk: Buffer): Buffer
  /** Returns the rest. */
  end(): Buffer
}

export function createRedaction(): Redaction {
  const known = new Map<string, Buffer>()
  return {
    add: (secret) => {
      if (secret.length < SHORTEST_SECRET) return false
      for (const form of formsOf(secret)) known.set(form, Buffer.from(form))
      return true
    },
    stream: () => {
      let held: Buffer = Buffer.alloc(0)
      return {
        push: (chunk) => {
          const { out, rest } = replace(Buffer.concat([held, chunk]), [...known.values()], true)
          held = rest
          return out
        },
        end: () => {
          const { out } = replace(held, [...known.values()], false)
          held = Buffer.alloc(0)
          return out
        },
      }
    },
  }
}

/** Plain; as in URLs, JSON and shell words; in base64 at any offset; in hex; each line of a longer text. */
function formsOf(secret: string): Set<string> {
  const bytes = Buffer.from(secret)
  const url = encodeURIComponent(secret)
  const lines = secret.includes('\n') ? secret.split(/\r?\n/).filter((line) => line.length >= 16) : []
  const forms = [
    secret,
    ...lines,
    url,
    url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    url.replaceAll('%20', '+'),
    JSON.stringify(secret).slice(1, -1),
    secret.replaceAll("'", `'\\''`),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...[0, 1, 2].flatMap((before) => [
      inBase64(bytes, before, 'base64'),
      inBase64(bytes, before, 'base64url'),
    ]),
  ]
  return new Set(forms.filter((form) => form.length >= SHORTEST_SECRET))
}

/** The base64 characters that depend on the secret alone when `before` bytes precede it, as in `user:secret`. */
function inBase64(bytes: Buffer, before: number, alphabet: 'base64' | 'base64url'): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString(alphabet)
  const bits = (before + bytes.length) * 8
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6))
}

function replace(text: Buffer, forms: readonly Buffer[], mayGoOn: boolean): { out: Buffer; rest: Buffer } {
  const out: Buffer[] = []
  const next = forms.map((form) => text.indexOf(form))
  let from = 0
  for (;;) {
    const found = earliest(text, forms, next, from)
    const open = mayGoOn ? beginningAt(text, forms, from) : text.length
    // A longer secret that begins at or before this match may contain it.
    if (found === undefined || open <= found.start) {
      out.push(text.subarray(from, open))
      return { out: Buffer.concat(out), rest: Buffer.from(text.subarray(open)) }
    }
    out.push(text.subarray(from, found.start), REPLACEMENT)
    from = found.end
  }
}

/** The first match at or after `from`, the longest if several start there. Updates `next`. */
function earliest(
  text: Buffer,
  forms: readonly Buffer[],
  next: number[],
  from: number,
): { start: number; end: number } | undefined {
  let best: { start: number; end: number } | undefined
  for (const [index, form] of forms.entries()) {
    let start = next[index] ?? -1
    if (start !== -1 && start < from) {
      start = text.indexOf(form, from)
      next[index] = start
    }
    if (start === -1) continue
    const end = start + form.length
    if (best === undefined || start < best.start || (start === best.start && end > best.end))
      best = { start, end }
  }
  return best
}

/** Where at the end of the text a secret may begin; the text's length if nowhere. */
function beginningAt(text: Buffer, forms: readonly Buffer[], from: number): number {
  let first = text.length
  for (const form of forms) {
    let at = Math.max(from, text.length - form.length + 1)
    for (; at < first; at += 1) {
      const length = text.length - at
      if (text[at] === form[0] && text.compare(form, 0, length, at) === 0) {
        first = at
        break
      }
    }
  }
  return first
}
