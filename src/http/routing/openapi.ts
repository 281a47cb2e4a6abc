import type { TObject, TSchema } from 'typebox'
import { ROUTES, type Route } from '../../api/routes.ts'
import { ErrorBody, EXAMPLE_ID, OAuthErrorBody, OPTIONAL_BODY_MARK } from '../../api/shared.ts'
import { addKindSchemas } from './kind-schemas.ts'
import { hoist, isDemanded, type Json } from './openapi-components.ts'
import { errorExamples, errorResponses } from './openapi-errors.ts'
import { addRoute, type Http } from './route.ts'
import { sendZipped, takeDocument, type Zipped, zip } from './zipped.ts'

const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A JWT access token from /oauth/token, or an opaque ckr_ token.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-mayfly',
    description: 'The session of an operator: only from the page of the console, with the key of the page.',
  },
  console: {
    type: 'apiKey',
    in: 'header',
    name: 'Mayfly-Console',
    description: 'The key of the page, beside the cookie of the session.',
  },
  client: {
    type: 'http',
    scheme: 'basic',
    description: 'Client id and client secret of an agent; or they, or an assertion, are in the form.',
  },
}
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  '200': 'The reply.',
  '201': 'It was created; `Location` says where.',
  '202': 'It was begun, and goes on.',
  '204': 'Done. The reply has no body.',
  '302': 'It is at another address.',
}

/** The document of every route, sorted by path. */
export function openApiDocument({ core: { settings, backends } }: Pick<Http, 'core'>): object {
  const components = new Map<string, Json>()
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    const [method = '', url = ''] = name.split(' ')
    const path = url.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(route) }
  }
  const sorted = Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))
  const hoisted = hoist(Object.fromEntries(sorted), components)
  for (const schema of [ErrorBody, OAuthErrorBody]) hoist(schema, components)
  addKindSchemas(components, backends.kinds.values())
  const schemas = [...components].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mayfly',
      version: settings.version,
      description: 'Short-lived credentials for agents: issued, ended and recorded.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: Object.fromEntries(schemas),
      examples: errorExamples(EXAMPLE_ID.request),
    },
    paths: hoisted,
    servers: [{ url: settings.issuer, description: 'This server.' }],
  }
}

function operationOf(route: Route): object {
  const { id, summary, tags, description, params, query, headers, body, replies } = route
  const isOAuth = tags.includes('oauth')
  const places = { query, path: params, header: headers }
  const parameters = Object.entries(places).flatMap(([place, schema]) => parametersIn(place, schema))
  return {
    operationId: id,
    summary,
    tags,
    ...(description && { description }),
    ...(body && {
      requestBody: { required: !(OPTIONAL_BODY_MARK in body), content: contentOf(body, route.consumes) },
    }),
    ...(parameters.length > 0 && { parameters }),
    security: isOAuth ? [{ client: [] }, {}] : securityOf(route),
    responses: {
      ...mapValues(replies, (schema, status) => replyOf(route, status, schema)),
      ...errorResponses(route, isOAuth),
    },
  }
}

function parametersIn(place: string, schema: TObject | undefined): object[] {
  const required: readonly string[] = schema?.required ?? []
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { description, examples, ...own } = property as Json
    return {
      schema: own,
      ...(examples !== undefined && { example: (examples as unknown[])[0] }),
      in: place,
      name,
      required: isDemanded(own) || required.includes(name),
      description,
    }
  })
}

function contentOf(schema: TSchema, media: readonly string[] = ['application/json']): object {
  const { examples, ...own } = schema as Json
  const example = (examples as unknown[] | undefined)?.[0]
  const content = { schema: own, ...(example !== undefined && { example }) }
  return Object.fromEntries(media.map((one) => [one, content]))
}

function replyOf({ links, produces }: Route, status: string, schema: TSchema): object {
  const description = DESCRIPTIONS[status] ?? 'The reply.'
  if (Reflect.get(schema, 'type') === 'null') return { description }
  return {
    description,
    content: contentOf(schema, produces),
    ...(links && { links: mapValues(links, (parameters, operationId) => ({ operationId, parameters })) }),
  }
}

function mapValues<V>(all: Readonly<Record<string, V>>, make: (value: V, key: string) => object): object {
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [key, make(value, key)]))
}

function securityOf({ access, scope }: Route): Record<string, string[]>[] {
  if (access === 'public') return []
  if (access === 'session') return [{ session: [], console: [] }]
  if (access === 'agent') return [{ bearer: [] }]
  return [{ bearer: scope === undefined ? [] : [scope] }, { session: [], console: [] }, {}]
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
