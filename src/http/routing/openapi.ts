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
  responses?: Record<string, { content?: Record<string, { schema?: { title?: string } }> }>
}
interface Document {
  components?: { schemas?: Record<string, object> }
  paths?: Record<string, Record<string, Operation>>
}

/** The document of every registered route, sorted by path. Error bodies are components, named by their title. */
export function openApiDocument(server: HttpServer): Document {
  const document = (server as unknown as { swagger(): Document }).swagger()
  const errors: Record<string, object> = {}
  const paths = Object.entries(document.paths ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const corrected = paths.map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, one]) => [method, correct(one, errors)])),
  ])
  return {
    ...document,
    components: { ...document.components, schemas: errors },
    paths: Object.fromEntries(corrected),
  }
}

/** Corrects facts that the plugin cannot know: some bodies are optional, and errors are always JSON. */
function correct(operation: Operation, errors: Record<string, object>): Operation {
  const { requestBody, responses = {} } = operation
  const schemas = Object.values(requestBody?.content ?? {}).map(({ schema }) => schema)
  const isOptional = schemas.some((schema) => schema !== undefined && OPTIONAL_BODY_MARK in schema)
  const errorsAsJson = Object.entries(responses).map(([status, response]) => {
    const schema = Object.values(response.content ?? {})[0]?.schema
    if (!/^[45]/.test(status) || schema?.title === undefined) return [status, response]
    errors[schema.title] = schema
    const content = { schema: { $ref: `#/components/schemas/${schema.title}` } }
    return [status, { ...response, content: { 'application/json': content } }]
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
