import type { FastifyInstance, FastifyRequest } from 'fastify'
import { invalid, Problem } from '../../domain/problems.ts'
import { parseStrictForm } from './strict-form.ts'
import { parseStrictJson } from './strict-json.ts'

type Registrar = Pick<FastifyInstance, 'addContentTypeParser' | 'removeAllContentTypeParsers'>

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'

/** Accepts the media type alone or with `charset=utf-8`; no other parameter is supported. */
function exactType(media: string): (contentType: string | undefined) => boolean {
  const escaped = media.replaceAll('.', '\\.')
  const pattern = new RegExp(`^${escaped}[ \\t]*(?:;[ \\t]*charset=(?:utf-8|"utf-8")[ \\t]*)?$`, 'i')
  return (contentType) => contentType === media || (contentType !== undefined && pattern.test(contentType))
}

function hasBody(request: FastifyRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
  return transfer !== undefined || (length !== undefined && length !== '0')
}

/** Accepts only JSON bodies. An empty body counts as absent: `request.body` stays undefined. */
export function installJsonBodies(server: Registrar): void {
  installBodies(server, JSON_MEDIA, (body) => {
    const value = parseStrictJson(body)
    // The framework passes an absent body to the schema as `null`, so a `null` that was sent must not pass.
    if (value === null) throw invalid('The body is null.')
    return value
  })
}

/**
 * For an encapsulated plugin whose routes accept forms instead of JSON:
 * `server.register((scope, _options, done) => { installFormBodies(scope); scope.post(…); done() })`.
 */
export function installFormBodies(scope: Registrar): void {
  installBodies(scope, FORM_MEDIA, parseStrictForm)
}

function installBodies(server: Registrar, media: string, parse: (body: Buffer) => unknown): void {
  const isExact = exactType(media)
  const refusal = () => new Problem('unsupported_media_type', { message: `Send the body as ${media}.` })
  server.removeAllContentTypeParsers()
  server.addContentTypeParser(media, { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined)
    if (!isExact(request.headers['content-type'])) return done(refusal(), undefined)
    let value: unknown
    try {
      value = parse(body)
    } catch (error) {
      return done(error as Error, undefined)
    }
    // Outside the try: an error of the handler is not a fault of the body.
    done(null, value)
  })
  server.addContentTypeParser('*', (request, _payload, done) => {
    if (hasBody(request)) done(refusal(), undefined)
    else done(null, undefined)
  })
}
