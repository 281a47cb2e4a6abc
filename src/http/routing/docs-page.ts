import { randomBytes } from 'node:crypto'
import type { ApiReferenceConfiguration } from '@scalar/fastify-api-reference'
import { fastify } from 'fastify'
import { addRoute, type Http } from './route.ts'
import { sendZipped, takeDocument, type Zipped, zip } from './zipped.ts'

const SCRIPT_PATH = '/docs/scalar.js'
/** Stands in the rendered page where each reply has a nonce of its own. */
const NONCE_MARK = 'NONCE-OF-THIS-REPLY'

/** The styles that the script adds without the nonce. They belong to its version; a browser test fails if they change. */
const STYLE_HASHES = [
  'l/2OpPg0d+2VLTLgwjf5mQo2CYwHDEqdj5TjbfEyVJI=',
  'T13Uev3xCax2N28XaoAE8DOzQZKvPp7ZQVAi1iRREjo=',
  'gmXByKZQ55+6LD1IX9vtDPBwThIQbraY9EGJSFapMGc=',
]
  .map((hash) => `'sha256-${hash}'`)
  .join(' ')
/** Spares the request for `/favicon.ico`. */
const NO_ICON = '<head>\n    <link rel="icon" href="data:," />'

/** Nothing is loaded from elsewhere, and what is typed goes nowhere but to this server. */
const CONFIGURATION = {
  url: '/openapi.json',
  pageTitle: 'Mayfly API',
  nonce: NONCE_MARK,
  cdn: SCRIPT_PATH,
  // "Try it" calls the server that the page came from, whatever its issuer is called.
  servers: [{ url: '/', description: 'This server.' }],
  authentication: { preferredSecurityScheme: 'bearer' },
  withDefaultFonts: false,
  telemetry: false,
  persistAuth: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
} satisfies ApiReferenceConfiguration

interface Docs {
  readonly page: string
  readonly script: Zipped
}

/**
 * The page and the script of `@scalar/fastify-api-reference`. It is loaded with the first reader, because its five
 * megabytes would slow down every start. Its own routes would be outside of the route table, so a server of its own that
 * never listens renders them.
 */
async function renderDocs(): Promise<Docs> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const renderer = fastify()
  await renderer.register(scalar, { routePrefix: '/docs', configuration: CONFIGURATION })
  const [page, script] = await Promise.all(
    ['/docs/', '/docs/js/scalar.js'].map(async (url) => (await renderer.inject(url)).rawPayload),
  )
  await renderer.close()
  if (page === undefined || script === undefined) throw new Error('the documentation was not rendered')
  return { page: page.toString().replace('<head>', NO_ICON), script: await zip(script) }
}

/**
 * Scripts and styles need the nonce of this reply. Attributes with styles are allowed: the page sets sizes and colours by
 * them, and they load nothing.
 */
function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}' ${STYLE_HASHES}`,
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

export function docsRoutes(http: Http): void {
  let rendered: Promise<Docs> | undefined
  const docs = () => {
    rendered ??= renderDocs().catch((error: unknown) => {
      rendered = undefined
      throw error
    })
    return rendered
  }

  addRoute(http, 'GET /', ({ reply }) => reply.redirect('/docs'))

  addRoute(http, 'GET /docs', async ({ actor, reply }) => {
    takeDocument(http.core, actor.origin)
    const { page } = await docs()
    const nonce = randomBytes(16).toString('base64')
    return reply
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', policyWith(nonce))
      .header('x-frame-options', 'DENY')
      .header('referrer-policy', 'no-referrer')
      .serializer((body: unknown) => String(body))
      .send(page.replaceAll(NONCE_MARK, nonce))
  })

  addRoute(http, 'GET /docs/scalar.js', async ({ actor, request, reply }) => {
    takeDocument(http.core, actor.origin)
    const { script } = await docs()
    return sendZipped(request, reply.header('content-type', 'text/javascript; charset=utf-8'), script)
  })
}
