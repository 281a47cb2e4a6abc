import { isUtf8 } from 'node:buffer'
import { parseStrictText } from '../../domain/formats/strict-json.ts'
import { invalid } from '../../domain/problems.ts'

/** The JSON text of a body. Throws `invalid_request` for bad UTF-8, and as `parseStrictText` does. */
export function parseStrictJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw invalid('The body is not valid UTF-8.')
  return parseStrictText(body.toString('utf8'))
}
