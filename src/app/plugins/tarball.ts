import { posix } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

/** One file of a package. */
export interface PackedFile {
  /** Relative, with `/`, without `.` and `..`. */
  readonly path: string
  readonly bytes: Uint8Array
}

/** An archive that is refused; the message says why. */
export class BadArchive extends Error {
  override readonly name = 'BadArchive'
}

const BLOCK = 512
const MAX_FILES = 50_000
const MAX_PATH = 1_024

export function isArchive(bytes: Uint8Array): boolean {
  return isGzip(bytes) || (bytes.length > BLOCK && textOf(bytes, 257, 5) === 'ustar')
}

const isGzip = (bytes: Uint8Array) => bytes[0] === 0x1f && bytes[1] === 0x8b

/**
 * The files of a tar archive, compressed or not, in the form of POSIX or GNU. Anything but files and directories is refused, and so
 * is a path that is absolute, leads outside, or occurs twice: what is checked must be what is written. Throws `BadArchive`.
 */
export async function readTarball(bytes: Uint8Array, maxBytes: number): Promise<PackedFile[]> {
  const archive = isGzip(bytes) ? await unzip(bytes, maxBytes) : bytes
  const files = new Map<string, PackedFile>()
  for (const { type, path, content } of entries(archive)) {
    if (type === '5') continue
    if (type !== '0' && type !== '\0')
      throw new BadArchive(`${JSON.stringify(path)} is a link or a device; only files are accepted`)
    const safe = safePath(path)
    if (files.has(safe)) throw new BadArchive(`it has ${JSON.stringify(safe)} twice`)
    if (files.size >= MAX_FILES) throw new BadArchive(`it has more than ${MAX_FILES} files`)
    files.set(safe, { path: safe, bytes: content })
  }
  requireTree(files)
  return [...files.values()]
}

async function unzip(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    const isTooLarge = (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE'
    throw new BadArchive(
      isTooLarge ? `it unpacks to more than ${maxBytes} bytes` : 'its compression is damaged',
    )
  }
}

interface Entry {
  readonly type: string
  readonly path: string
  readonly content: Uint8Array
}

/** With the long paths that precede their entry put in place. */
function* entries(archive: Uint8Array): Generator<Entry> {
  let longPath: string | undefined
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const head = archive.subarray(at, at + BLOCK)
    if (head.every((byte) => byte === 0)) return
    requireSum(head)
    const size = numberOf(head, 124, 12)
    const content = archive.subarray(at + BLOCK, at + BLOCK + size)
    if (content.length < size) throw new BadArchive('it ends in the middle of a file')
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
    const type = String.fromCharCode(head[156] ?? 0)
    if (type === 'x') longPath = paxPath(content) ?? longPath
    else if (type === 'L') longPath = textOf(content, 0, content.length)
    else if (type !== 'g') {
      yield { type, path: longPath ?? shortPath(head), content }
      longPath = undefined
    }
  }
  throw new BadArchive('it has no end')
}

function requireSum(head: Uint8Array): void {
  const sum = head.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0)
  if (sum !== numberOf(head, 148, 8)) throw new BadArchive('a header is damaged')
}

function numberOf(head: Uint8Array, at: number, length: number): number {
  const text = textOf(head, at, length).trim()
  if (!/^[0-7]{1,11}$/.test(text)) throw new BadArchive('a header is damaged')
  return Number.parseInt(text, 8)
}

/** Up to the first NUL. */
function textOf(bytes: Uint8Array, at: number, length: number): string {
  const field = bytes.subarray(at, at + length)
  const end = field.indexOf(0)
  return Buffer.from(end === -1 ? field : field.subarray(0, end)).toString('utf8')
}

function shortPath(head: Uint8Array): string {
  // GNU uses the bytes of the prefix for times.
  const prefix = textOf(head, 257, 8) === 'ustar  ' ? '' : textOf(head, 345, 155)
  const name = textOf(head, 0, 100)
  return prefix === '' ? name : `${prefix}/${name}`
}

/** The `path` of extended headers: records of `<length> <key>=<value>\n` (POSIX.1-2001). */
function paxPath(content: Uint8Array): string | undefined {
  let path: string | undefined
  for (let at = 0; at < content.length; ) {
    const digits = /^\d{1,9}(?= )/.exec(Buffer.from(content.subarray(at, at + 10)).toString('latin1'))?.[0]
    const record = content.subarray(at, at + Number(digits))
    if (digits === undefined || record.at(-1) !== 0x0a) throw new BadArchive('an extended header is damaged')
    const [key, ...value] = Buffer.from(record.subarray(digits.length + 1, -1))
      .toString('utf8')
      .split('=')
    if (key === 'path') path = value.join('=')
    if (key === 'size' || key === 'linkpath') throw new BadArchive(`an extended header has "${key}"`)
    at += record.length
  }
  return path
}

function safePath(path: string): string {
  const normal = posix.normalize(path)
  const isSafe =
    path !== '' &&
    path.length <= MAX_PATH &&
    !/[\p{Cc}\\]/u.test(path) &&
    !posix.isAbsolute(path) &&
    !path.split('/').includes('..') &&
    !normal.endsWith('/') &&
    normal !== '.'
  if (!isSafe) throw new BadArchive(`${JSON.stringify(path)} is no path inside the package`)
  return normal
}

/** No file is the directory of another one. */
function requireTree(files: ReadonlyMap<string, PackedFile>): void {
  for (const path of files.keys())
    for (let parent = posix.dirname(path); parent !== '.'; parent = posix.dirname(parent))
      if (files.has(parent)) throw new BadArchive(`${JSON.stringify(parent)} is a file and a directory`)
}

/** An archive whose bytes depend on nothing but these files: no times, users or modes, and no compression. */
export function writeTarball(files: readonly PackedFile[]): Buffer {
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
  const parts = sorted.flatMap(({ path, bytes }) => [
    ...(Buffer.byteLength(path) > 100 ? packed('x', 'long', Buffer.from(paxRecord(path))) : []),
    ...packed('0', Buffer.byteLength(path) > 100 ? 'long' : path, bytes),
  ])
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

/** Its length counts itself. */
function paxRecord(path: string): string {
  const rest = ` path=${path}\n`
  const bytes = Buffer.byteLength(rest)
  const guess = bytes + String(bytes).length
  const length = bytes + String(guess).length
  return `${length}${rest}`
}

function packed(type: '0' | 'x', name: string, bytes: Uint8Array): Uint8Array[] {
  const head = Buffer.alloc(BLOCK)
  head.write(name, 0, 100, 'utf8')
  head.write('0000644\x000000000\x000000000\0', 100, 'latin1')
  head.write(`${bytes.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0`, 124, 'latin1')
  head.write(' '.repeat(8), 148, 'latin1')
  head.write(`${type}`, 156, 'latin1')
  head.write('ustar\x0000', 257, 'latin1')
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return [head, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]
}
