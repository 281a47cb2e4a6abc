import swagger from '@fastify/swagger'
import { ROUTES, type Route } from '../../api/routes.ts'
import { ErrorBody, EXAMPLE_ID, OAuthErrorBody, OPTIONAL_BODY_MARK } from '../../api/shared.ts'
import type { HttpServer } from '../server/server.ts'
import { addKindSchemas } from './kind-schemas.ts'
import { hoist, isDemanded, type Json } from './openapi-components.ts'
import { errorExamples, errorResponses } from './openapi-errors.ts'
import { addRoute, type Http } from './route.ts'
import { sendZipped, takeDocument, type Zipped, zip } from './zipped.ts'

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
            description: 'A JWT access token from /oauth/token, or an opaque ckr_ token.',
          },
          client: {
            type: 'http',
            scheme: 'basic',
            description:
              'Client id and client secret of an agent; or they, or an assertion, are in the form.',
          },
        },
      },
    },
  })
}

interface Collected {
  readonly operationId: string
  readonly parameters?: readonly Json[]
  readonly requestBody?: { readonly content: Record<string, { schema?: Json }> }
  readonly responses?: Record<string, { content?: object }>
}
interface Document {
  components?: { schemas?: Record<string, object>; examples?: Record<string, object> }
  paths?: Record<string, Record<string, Collected>>
}

const ROUTE_OF = new Map<string, Route>(Object.values(ROUTES).map((route) => [route.id, route]))
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  '200': 'The reply.',
  '201': 'It was created; `Location` says where.',
  '202': 'It was begun, and goes on.',
  '204': 'Done. The reply has no body.',
  '302': 'It is at another address.',
}

/** The document of every registered route, sorted by path. */
export function openApiDocument({ server, core }: Pick<Http, 'server' | 'core'>): object {
  const collected = (server as unknown as { swagger(): Document }).swagger()
  const components = new Map<string, Json>()
  const paths = Object.entries(collected.paths ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  const corrected = paths.map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, one]) => [method, correct(one)])),
  ])
  const hoisted = hoist(Object.fromEntries(corrected), components)
  for (const schema of [ErrorBody, OAuthErrorBody]) hoist(schema, components)
  addKindSchemas(components, core.backends.kinds.values())
  const schemas = [...components].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    ...collected,
    servers: [{ url: core.settings.issuer, description: 'This server.' }],
    components: {
      ...collected.components,
      schemas: Object.fromEntries(schemas),
      examples: errorExamples(EXAMPLE_ID.request),
    },
    paths: hoisted,
  }
}

/** Adds what the plugin cannot know: optional bodies, demanded parameters, errors and links. */
function correct(operation: Collected): object {
  const { requestBody, parameters, responses = {}, operationId } = operation
  const route = ROUTE_OF.get(operationId)
  if (route === undefined) throw new Error(`no operation ${operationId}`)
  const bodies = Object.values(requestBody?.content ?? {}).map(({ schema }) => schema)
  const isOptional = bodies.some((schema) => schema !== undefined && OPTIONAL_BODY_MARK in schema)
  const good = Object.entries(responses).filter(([status]) => /^[23]/.test(status))
  return {
    ...operation,
    ...(parameters && { parameters: parameters.map((one) => ({ ...one, required: isDemanded(one) })) }),
    ...(requestBody && { requestBody: { ...requestBody, required: !isOptional } }),
    responses: {
      ...Object.fromEntries(good.map(([status, one]) => [status, described(status, one, route)])),
      ...errorResponses(route, route.tags.includes('oauth')),
    },
  }
}

function described(status: string, response: { content?: object }, { links }: Route): object {
  const linked = links !== undefined && response.content !== undefined
  return {
    ...response,
    description: DESCRIPTIONS[status] ?? 'The reply.',
    ...(linked && {
      links: Object.fromEntries(
        Object.entries(links).map(([operationId, parameters]) => [operationId, { operationId, parameters }]),
      ),
    }),
  }
}

export function openApiRoutes(http: Http): void {
  let made: { readonly kinds: unknown; readonly document: Promise<Zipped> } | undefined
  addRoute(http, 'GET /openapi.json', async ({ actor, request, reply }) => {
    takeDocument(http.core, actor.origin)
    const { kinds } = http.core.backends
    // Plugins come and go.
    if (made?.kinds !== kinds)
      made = { kinds, document: zip(Buffer.from(JSON.stringify(openApiDocument(http)))) }
    const { document } = made
    return sendZipped(
      request,
      reply.header('content-type', 'application/json; charset=utf-8'),
      await document,
    )
  })
}
