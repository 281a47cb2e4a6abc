import { createNeedles, type Needles } from '../../domain/needles.ts'
import { formsOf } from '../../domain/secret-forms.ts'

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
  let needles = createNeedles<null>([])
  return {
    add: (secret) => {
      if (secret.length < SHORTEST_SECRET) return false
      for (const form of writtenForms(secret)) known.set(form.toString('latin1'), form)
      needles = createNeedles([...known.values()].map((bytes) => ({ bytes, of: null })))
      return true
    },
    stream: () => {
      let held: Buffer = Buffer.alloc(0)
      return {
        push: (chunk) => {
          const { out, rest } = replace(Buffer.concat([held, chunk]), needles, true)
          held = rest
          return out
        },
        end: () => {
          const { out } = replace(held, needles, false)
          held = Buffer.alloc(0)
          return out
        },
      }
    },
  }
}

/** As in messages; and as programs print it: in shell words, in hex, each line of a longer text. */
function writtenForms(secret: string): Buffer[] {
  const hex = Buffer.from(secret).toString('hex')
  const lines = secret.includes('\n') ? secret.split(/\r?\n/).filter((line) => line.length >= 16) : []
  const printed = [...lines, secret.replaceAll("'", `'\\''`), hex, hex.toUpperCase()]
  return [...formsOf(secret).map(({ bytes }) => bytes), ...printed.map((form) => Buffer.from(form))]
}

function replace(text: Buffer, needles: Needles<null>, mayGoOn: boolean): { out: Buffer; rest: Buffer } {
  const out: Buffer[] = []
  let from = 0
  for (;;) {
    const found = needles.find(text, from)
    const open = mayGoOn ? text.length - needles.pending(text, from) : text.length
    // A longer secret that begins at or before this match may contain it.
    if (found === undefined || open <= found.at) {
      out.push(text.subarray(from, open))
      return { out: Buffer.concat(out), rest: Buffer.from(text.subarray(open)) }
    }
    out.push(text.subarray(from, found.at), REPLACEMENT)
    from = found.at + found.length
  }
}
