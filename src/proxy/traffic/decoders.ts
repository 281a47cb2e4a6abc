import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib'

/** More than one after the other is for no good. */
const MOST = 2

/** What takes off the codings of a `Content-Encoding`, the last first. Null: it cannot be taken off here. */
export function decodersFor(encoding: string): Transform[] | null {
  const names = encoding
    .toLowerCase()
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '' && one !== 'identity')
  if (names.length > MOST) return null
  const decoders = names.toReversed().map(decoderOf)
  const known = decoders.filter((one) => one !== undefined)
  return known.length === decoders.length ? known : null
}

/** Whatever has arrived goes on, so that events are not held back. */
function decoderOf(name: string): Transform | undefined {
  const flush = { flush: constants.Z_SYNC_FLUSH }
  if (name === 'gzip' || name === 'x-gzip') return createGunzip(flush)
  if (name === 'deflate') return createInflate(flush)
  if (name === 'br') return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })
  if (name === 'zstd') return createZstdDecompress({ flush: constants.ZSTD_e_flush })
  return undefined
}
