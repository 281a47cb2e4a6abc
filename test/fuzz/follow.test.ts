import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openApiDocument } from '../../src/http/routing/openapi.ts'
import { LONG } from '../support/long.ts'
import { follow } from './follow.ts'
import { openPool, type Pool } from './pool.ts'
import type { Document } from './replies.ts'
import { withoutRefs } from './without-refs.ts'

/**
 * Who follows the document is not refused for the form of a request. Draws bodies and queries from the document alone,
 * and sends them as an agent that may do everything. What a pattern cannot say (a point on a curve, a git object by this
 * agent, a secret) may still be refused.
 */
const EACH = LONG ? 1_000 : 40
const SEED = Number(process.env['MAYFLY_FUZZ_SEED'] ?? 20_261_122)

let pool: Pool
let document: Document
beforeAll(async () => {
  pool = await openPool()
  document = withoutRefs(openApiDocument(pool)) as Document
})
afterAll(() => pool.close())

const FORM = 'application/x-www-form-urlencoded'

/** The share of well-formed requests that the server refuses as malformed. */
async function refusedShare(path: string, method: string): Promise<number> {
  const operation = document.paths[path]?.[method]
  const [media = '', content] = Object.entries(operation?.requestBody?.content ?? {})[0] ?? []
  const url = path.replace('{backend}', 'tok').replace('{name}', 'tok')
  const refused: string[] = []
  const bodies = fc.sample(
    follow({ ...content?.schema, ...(content?.example !== undefined && { examples: [content.example] }) }),
    { numRuns: EACH, seed: SEED },
  )
  for (const body of bodies as Record<string, unknown>[]) {
    const isForm = media === FORM
    const bySecret = 'client_secret' in body || 'client_assertion' in body
    const authorization = isForm ? pool.basic('wide') : pool.bearer('wide')
    const reply = await pool.server.inject({
      method: method.toUpperCase() as 'POST',
      url: url.endsWith('/backends') ? `${url}?check=false` : url,
      headers: {
        'content-type': media,
        ...(isForm && bySecret ? {} : { authorization: authorization ?? '' }),
      },
      payload: isForm ? new URLSearchParams(body as Record<string, string>).toString() : JSON.stringify(body),
    })
    const error = reply.statusCode < 400 ? undefined : reply.json().error
    const code = error?.code ?? error
    if (reply.statusCode >= 500) throw new Error(`${path}: ${reply.body}`)
    if (code === 'invalid_request' || code === 'unsupported_grant_type') refused.push(reply.body)
  }
  if (process.env['MAYFLY_FUZZ_DETAIL'] !== undefined) console.log(path, refused.length, refused.slice(0, 8))
  return refused.length / EACH
}

describe.each([
  ['/oauth/token', 'post', 0.05],
  ['/oauth/introspect', 'post', 0.05],
  ['/oauth/revoke', 'post', 0.05],
  // Half of the points that a pattern lets through are not on the curve.
  ['/v1/enroll', 'post', 0.25],
  // Base64 of something that is no git object.
  ['/v1/sign', 'post', 0.45],
  // A signing key that is none, or a default lifetime beyond the longest.
  ['/v1/admin/backends', 'post', 0.5],
  ['/v1/admin/agents', 'post', 0.05],
  ['/v1/request', 'post', 0.05],
  // Options that the kind does not have.
  ['/v1/credentials/{backend}', 'post', 0.3],
])('%s %s', (path, method, most) => {
  test(`refuses at most ${most * 100} % of the bodies that follow the document`, async () => {
    expect(await refusedShare(path, method)).toBeLessThanOrEqual(most)
  })
})
