import { createHash, type Hash } from 'node:crypto'
import { Transform, type TransformCallback } from 'node:stream'
import { EMPTY_HASH, hashOf, type SigningKey, scopeText } from './canonical.ts'

/** A chunk is held until its hash is known. Clients send 64 KiB to 1 MiB. */
export const MAX_CHUNK = 16 * 1024 * 1024
const MAX_LINE = 1024
const MAX_TRAILER_LINES = 32
const HEAD = /^([0-9a-fA-F]{1,8});chunk-signature=([0-9a-f]{64})$/
const TRAILER_SIGNATURE = 'x-amz-trailer-signature'
const CRLF = Buffer.from('\r\n')

/** The body is not what its header says. The connection must break. */
export class ChunkError extends Error {}

export interface ChunkSigning {
  readonly key: SigningKey
  /** Signature of the request, which that of the first chunk includes. */
  readonly seed: string
  readonly hasTrailer: boolean
  /** What the client has signed with; its signatures are compared where it is there. */
  readonly claim?: { readonly key: SigningKey; readonly seed: string } | undefined
}

/**
 * Signs each chunk of `aws-chunked` anew ("Transferring Payload in Multiple Chunks", and "Including Trailing Headers"). Signatures
 * have one length, so the body keeps its own. Ends with `ChunkError` for what is no such body, or ends too early.
 */
export function createChunkSigner(signing: ChunkSigning): Transform {
  const sealer = createSealer(signing)
  const reader = createReader(sealer)
  return new Transform({
    transform(data: Buffer, _encoding, done: TransformCallback) {
      run(done, () => {
        for (const part of reader.read(data)) this.push(part)
      })
    },
    flush(done: TransformCallback) {
      run(done, () => {
        if (!reader.isComplete()) throw new ChunkError('the body ends within a chunk')
      })
    },
  })
}

function run(done: TransformCallback, act: () => void): void {
  try {
    act()
  } catch (error) {
    done(error instanceof Error ? error : new ChunkError('failed'))
    return
  }
  done()
}

/** Each returns the new signature of what had this one. */
interface Sealer {
  readonly hasTrailer: boolean
  chunk(hash: string, signature: string): string
  trailer(lines: readonly string[], signature: string): string
}

function createSealer({ claim, hasTrailer, ...own }: ChunkSigning): Sealer {
  const [theirs, ours] = [claim && createChain(claim), createChain(own)]
  const check = (expected: string | undefined, signature: string) => {
    if (expected !== undefined && expected !== signature) throw new ChunkError('a signature is wrong')
  }
  return {
    hasTrailer,
    chunk(hash, signature) {
      check(theirs?.chunk(hash), signature)
      return ours.chunk(hash)
    },
    trailer(lines, signature) {
      check(theirs?.trailer(lines), signature)
      return ours.trailer(lines)
    },
  }
}

/** Each signature includes the one before it. */
function createChain({ key, seed }: Pick<ChunkSigning, 'key' | 'seed'>) {
  let previous = seed
  const sign = (algorithm: string, ...hashes: string[]) => {
    const text = [algorithm, key.scope.time, scopeText(key.scope), previous, ...hashes].join('\n')
    previous = key.sign(text)
    return previous
  }
  return {
    chunk: (hash: string) => sign('AWS4-HMAC-SHA256-PAYLOAD', EMPTY_HASH, hash),
    trailer: (lines: readonly string[]) => {
      const canonical = lines
        .map((line) => {
          const at = line.indexOf(':')
          return `${line.slice(0, at).toLowerCase().trim()}:${line.slice(at + 1).trim()}\n`
        })
        .sort()
        .join('')
      return sign('AWS4-HMAC-SHA256-TRAILER', hashOf(canonical))
    },
  }
}

interface Lines {
  /** Up to the next line feed; undefined: it is not here yet. */
  read(from: Buffer): { readonly text: string; readonly rest: Buffer } | undefined
}

function createLines(): Lines {
  let begun = Buffer.alloc(0)
  return {
    read(from) {
      const at = from.indexOf(10)
      const part = at === -1 ? from : from.subarray(0, at)
      if (begun.length + part.length > MAX_LINE) throw new ChunkError('a line is too long')
      const line = Buffer.concat([begun, part])
      begun = at === -1 ? line : Buffer.alloc(0)
      if (at === -1) return undefined
      return { text: line.toString('latin1').replace(/\r$/, ''), rest: from.subarray(at + 1) }
    },
  }
}

function headOf(size: string, signature: string): Buffer {
  return Buffer.from(`${size};chunk-signature=${signature}\r\n`)
}

interface Chunk {
  readonly size: string
  readonly signature: string
  left: number
  readonly parts: Buffer[]
  readonly hash: Hash
}

interface Reader {
  read(data: Buffer): Buffer[]
  isComplete(): boolean
}

function createReader(sealer: Sealer): Reader {
  const lines = createLines()
  let data: Chunk | undefined
  const trailer: string[] = []
  let state: 'head' | 'data' | 'after' | 'end' | 'trailer' | 'done' = 'head'

  function onHead(text: string): Buffer[] {
    const [, size, signature] = HEAD.exec(text) ?? []
    const length = Number.parseInt(size ?? '', 16)
    if (size === undefined || signature === undefined || !(length <= MAX_CHUNK))
      throw new ChunkError('the head of a chunk is malformed')
    if (length === 0) {
      state = sealer.hasTrailer ? 'trailer' : 'end'
      return [headOf(size, sealer.chunk(EMPTY_HASH, signature))]
    }
    data = { size, signature, left: length, parts: [], hash: createHash('sha256') }
    state = 'data'
    return []
  }

  function onTrailer(text: string): Buffer[] {
    if (text === '' && trailer.length === 0) return [CRLF]
    if (trailer.length >= MAX_TRAILER_LINES || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+:/.test(text))
      throw new ChunkError('the trailer is malformed')
    if (text.toLowerCase().startsWith(`${TRAILER_SIGNATURE}:`)) {
      state = 'end'
      const signature = text.slice(TRAILER_SIGNATURE.length + 1).trim()
      return [Buffer.from(`${TRAILER_SIGNATURE}:${sealer.trailer(trailer, signature)}\r\n`)]
    }
    trailer.push(text)
    return [Buffer.from(`${text}\r\n`, 'latin1')]
  }

  function onLine(text: string): Buffer[] {
    if (state === 'head') return onHead(text)
    if (state === 'trailer') return onTrailer(text)
    if (text !== '') throw new ChunkError('a chunk is longer than it says')
    state = state === 'after' ? 'head' : 'done'
    return [CRLF]
  }

  /** Of a chunk: what is still missing of it. Returns the chunk when it is whole. */
  function onData(from: Buffer): { made: Buffer[]; rest: Buffer } {
    if (data === undefined) throw new ChunkError('no chunk')
    const part = from.subarray(0, data.left)
    data.parts.push(part)
    data.hash.update(part)
    data.left -= part.length
    const rest = from.subarray(part.length)
    if (data.left > 0) return { made: [], rest }
    const { size, signature, parts, hash } = data
    data = undefined
    state = 'after'
    return { made: [headOf(size, sealer.chunk(hash.digest('hex'), signature)), ...parts], rest }
  }

  return {
    read(given) {
      const all: Buffer[] = []
      let rest = given
      while (rest.length > 0) {
        if (state === 'done') throw new ChunkError('something follows the last chunk')
        if (state === 'data') {
          const next = onData(rest)
          all.push(...next.made)
          rest = next.rest
        } else {
          const next = lines.read(rest)
          if (next === undefined) break
          all.push(...onLine(next.text))
          rest = next.rest
        }
      }
      return all
    },
    isComplete: () => state === 'done',
  }
}
