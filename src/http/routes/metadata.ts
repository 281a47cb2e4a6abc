import { MAX_METADATA_BYTES } from '../../domain/limits.ts'
import { invalid } from '../../domain/problems.ts'

/** Free-form metadata is limited in bytes (decisions.md §1.9); the schema limits the number of keys. */
export function requireMetadata(metadata: object | undefined): void {
  if (metadata === undefined) return
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalid('"metadata" is larger than 8192 bytes.')
}
