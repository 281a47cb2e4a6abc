import swagger from '@fastify/swagger'
import { Type } from 'typebox'
import type { HttpServer } from '../server/server.ts'
import { OPTIONAL_BODY_MARK } from '../server/validation.ts'
import { docsPage } from './docs-page.ts'
import { addRoute, type Http } from './route.ts'

/** Register before the routes: the plugin collects their schemas as they are added. */
export async function installOpenApi(server: HttpServer, version: string): Promise<void> {
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Mayfly',
        version,
        description: 'Short-lived credentials for agents: issued, ended and recorded.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'a JWT access token from /oauth/token, or an opaque ckr_ token',
          },
        },
      },
    },
  })
}

interface Operation {
  requestBody?: { required?: boolean; content: Record<string, { schema?: object }> }
  responses?: Record<string, { content?: Record<string, unknown> }>
}
type Document = { paths?: Record<string, Record<string, Operation>> }

/** The OpenAPI document of the registered routes, with sorted paths. */
export function openApiDocument(server: HttpServer): Document {
  const document = (server as unknown as { swagger(): Document }).swagger()
  const paths = Object.entries(document.paths ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const corrected = paths.map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, one]) => [method, correct(one)])),
  ])
  return { ...document, paths: Object.fromEntries(corrected) }
}

/** Corrects facts that the plugin cannot know: some bodies are optional, and errors are always JSON. */
function correct(operation: Operation): Operation {
  const { requestBody, responses = {} } = operation
  const schemas = Object.values(requestBody?.content ?? {}).map(({ schema }) => schema)
  const isOptional = schemas.some((schema) => schema !== undefined && OPTIONAL_BODY_MARK in schema)
  const errorsAsJson = Object.entries(responses).map(([status, response]) => {
    const [content] = Object.values(response.content ?? {})
    return /^[45]/.test(status)
      ? [status, { ...response, content: { 'application/json': content } }]
      : [status, response]
  })
  return {
    ...operation,
    ...(requestBody && isOptional ? { requestBody: { ...requestBody, required: false } } : {}),
    responses: Object.fromEntries(errorsAsJson),
  }
}

export function openApiRoutes(http: Http): void {
  let text: string | undefined
  addRoute(http, 'GET /openapi.json', {
    schema: {
      summary: 'This interface as OpenAPI 3.1',
      tags: ['operations'],
      response: { 200: Type.Unknown() },
    },
    handle: ({ reply }) => {
      text ??= JSON.stringify(openApiDocument(http.server))
      return reply
        .header('content-type', 'application/json; charset=utf-8')
        .serializer((body: unknown) => String(body))
        .send(text)
    },
  })

  const page = docsPage()
  addRoute(http, 'GET /docs', {
    schema: {
      summary: 'This interface as a page',
      tags: ['operations'],
      response: { 200: Type.String() },
      produces: ['text/html'],
    },
    handle: ({ reply }) =>
      reply
        .header('content-type', 'text/html; charset=utf-8')
        .header('content-security-policy', page.contentSecurityPolicy)
        .header('x-frame-options', 'DENY')
        .header('referrer-policy', 'no-referrer')
        .serializer((body: unknown) => String(body))
        .send(page.html),
  })
}
