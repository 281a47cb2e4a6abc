import { createNeedles, type Needles } from '../../domain/needles.ts'
import { type Form, formsOf } from '../../domain/secret-forms.ts'

/** Replaces secrets in what comes back, by a mask of the same length. One for each reply. */
export interface Mask {
  /** A value of latin1. */
  header(value: string): string
  /** As in `rawHeaders`: names and values in turn. Values only. */
  headers(raw: readonly string[]): string[]
  /** For one body. It holds back only bytes that could be the beginning of a secret. */
  open(): BodyMask
  /** How often a secret was masked. */
  readonly count: number
}

export interface BodyMask {
  /** Returns what may go on: often the chunk itself. Never changes the chunk. */
  write(chunk: Buffer): Buffer
  /** What is held back, after a silence: what follows may wait for an answer to it. Nothing, if it is too much of a secret. */
  release(): Buffer
  end(): Buffer
}

export interface Masks {
  /** For one reply. */
  mask(): Mask
}

const ASTERISK = 0x2a
const NOTHING = Buffer.alloc(0)
/** A beginning of a secret that is no longer may pass: many begin alike (`sk-ant-`). */
const LONGEST_BEGINNING = 12

/** Once for each `Live`: its tables are shared by all replies. */
export function createMasks(secrets: Iterable<string>): Masks {
  const forms = [...new Set(secrets)].flatMap(formsOf)
  const needles = createNeedles(forms.map((form) => ({ bytes: form.bytes, of: form })))
  return { mask: () => maskWith(needles) }
}

function maskWith(needles: Needles<Form>): Mask {
  let count = 0
  const hit = () => {
    count += 1
  }
  const header = (value: string) => {
    const bytes = Buffer.from(value, 'latin1')
    const { whole, masked } = maskedIn(needles, bytes, 0, hit)
    return masked === 0 ? value : whole.toString('latin1')
  }
  return {
    header,
    headers: (raw) =>
      // Nearly always there is nothing to mask, which one search tells of all together.
      isIn(needles, raw) ? raw.map((text, index) => (index % 2 === 0 ? text : header(text))) : [...raw],
    open: () => openBody(needles, hit),
    get count() {
      return count
    },
  }
}

function isIn(needles: Needles<Form>, texts: readonly string[]): boolean {
  return needles.find(Buffer.from(texts.join('\n'), 'latin1'), 0) !== undefined
}

function openBody(needles: Needles<Form>, hit: () => void): BodyMask {
  let held: Buffer = NOTHING
  /** Characters at the beginning of what comes that hold bits of a secret that is masked already. */
  let after = 0
  /** How much of what is held was released. */
  let released = 0
  return {
    write(chunk) {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const found = maskedIn(needles, bytes, after, hit)
      const ready = bytes.length - needles.pending(bytes, found.end)
      after = Math.max(0, (found.masked || after) - ready)
      // As it came: what is masked of it belongs to the secret before, and another may begin there.
      held = Buffer.from(bytes.subarray(ready))
      const from = Math.min(released, ready)
      released -= from
      return found.whole.subarray(from, ready)
    },
    release() {
      if (held.length >= LONGEST_BEGINNING) return NOTHING
      const { whole } = maskedIn(needles, held, after, () => {})
      const left = whole.subarray(released)
      released = whole.length
      return left
    },
    end() {
      const { whole } = maskedIn(needles, held, after, () => {})
      if (held.length < LONGEST_BEGINNING) return whole.subarray(released)
      // The upstream ended in the middle of a secret, perhaps because somebody asked for a part.
      hit()
      return Buffer.alloc(held.length - released, ASTERISK)
    },
  }
}

interface Masked {
  readonly whole: Buffer
  /** Where the last secret ends; 0: there was none. */
  readonly end: number
  /** Where the mask ends, which may be beyond the buffer; 0: nothing was masked. */
  readonly masked: number
}

/** `after`: how many characters at the beginning belong to a secret before, if they are base64. */
function maskedIn(needles: Needles<Form>, bytes: Buffer, after: number, hit: () => void): Masked {
  let copy: Buffer | undefined
  let end = 0
  let masked = 0
  const cover = (from: number, to: number) => {
    copy ??= Buffer.from(bytes)
    copy.fill(ASTERISK, from, Math.min(to, bytes.length))
    masked = to
  }
  if (after > 0 && isBase64(bytes[0])) cover(0, after)
  for (let found = needles.find(bytes, 0); found !== undefined; found = needles.find(bytes, end)) {
    hit()
    const { before, after: behind } = found.of
    end = found.at + found.length
    const from = isBase64(bytes[found.at - 1]) ? found.at - before : found.at
    const reaches = end === bytes.length || isBase64(bytes[end])
    cover(from, reaches ? end + behind : end)
  }
  return { whole: copy ?? bytes, end, masked }
}

/** Of either alphabet (RFC 4648). Padding holds nothing. */
function isBase64(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const isLetter = (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
  return isLetter || (byte >= 0x2f && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x5f
}
