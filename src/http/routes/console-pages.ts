import { randomBytes } from 'node:crypto'
import { ROUTES, type RouteName } from '../../api/routes.ts'
import { CONSOLE_FILES_PER_MINUTE } from '../../domain/limits.ts'
import { isLoopbackHost } from '../../domain/network/loopback.ts'
import { Problem } from '../../domain/problems.ts'
import { type ConsoleFiles, consoleFilesOf, formFor } from '../console/files.ts'
import { addRoute, type Http, pathsOf } from '../routing/route.ts'
import { takeDocument } from '../routing/zipped.ts'

/** The files of the build by their paths; none if there was no build. */
export type ReadConsoleFiles = () => ReadonlyMap<string, Buffer>

/**
 * Nothing but our own files, nothing inline, no text that becomes markup or code, and in nobody's frame. Dialogs of the
 * page add a style of their own, which stops the page behind them from scrolling: it has the nonce of this reply
 * (docs/explanation/adr/0064-console-files.md).
 */
const policyWith = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

const NOT_BUILT = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Mayfly</title></head>
  <body>
    <h1>The console is not built</h1>
    <p>This server runs from its sources, and dist/web is missing. Run <code>npm run build</code>, and load this page again.</p>
  </body>
</html>
`

export function consolePageRoutes(http: Http, read: ReadConsoleFiles): void {
  const { relyingParty } = http.core.settings
  const { host } = new URL(relyingParty.origin)
  let known: ConsoleFiles | undefined
  // With the first reader: most servers that tests and scripts start never have one.
  const files = () => {
    known ??= consoleFilesOf(read())
    return known
  }

  addRoute(http, 'GET /console', ({ actor, request, reply }) => {
    takeDocument(http.core, actor.origin)
    const path = (request.raw.url ?? '').replace(/^.*?(?=\/console)/, '')
    if (path.startsWith('/console/assets/')) throw new Problem('not_found')
    // Browsers keep the fragment. Elsewhere a proxy may have its own name for us.
    if (isLoopbackHost(request.hostname) && isLoopbackHost(relyingParty.id) && request.host !== host)
      return reply.redirect(`${relyingParty.origin}${path}`)
    const nonce = randomBytes(16).toString('base64')
    const page = files()?.page(nonce)
    return reply
      .code(page === undefined ? 503 : 200)
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', policyWith(nonce))
      .header('cross-origin-opener-policy', 'same-origin')
      .header('cross-origin-resource-policy', 'same-origin')
      .header('permissions-policy', 'publickey-credentials-get=(self), publickey-credentials-create=(self)')
      .header('x-frame-options', 'DENY')
      .header('referrer-policy', 'no-referrer')
      .send(page ?? Buffer.from(NOT_BUILT))
  })

  addRoute(http, 'GET /console/assets/:file', ({ actor, request, reply, params }) => {
    takeDocument(http.core, actor.origin, { kind: 'console', perMinute: CONSOLE_FILES_PER_MINUTE })
    const asset = files()?.asset(params.file)
    if (asset === undefined) throw new Problem('not_found')
    const { coding, bytes } = formFor(asset, String(request.headers['accept-encoding'] ?? ''))
    if (coding !== undefined) reply.header('content-encoding', coding)
    return reply
      .header('content-type', asset.type)
      .header('vary', 'accept-encoding')
      .header('cross-origin-resource-policy', 'same-origin')
      .send(bytes)
  })
}

/** Where the console is off, its routes are known, and say so. */
export function refuseConsole({ server }: Http): void {
  const isOurs = (name: RouteName) => ROUTES[name].tags.some((tag) => tag === 'console')
  for (const name of (Object.keys(ROUTES) as RouteName[]).filter(isOurs)) {
    const [method = ''] = name.split(' ')
    for (const url of pathsOf(name))
      server.route({
        method,
        url,
        onRequest: (_request, _reply, done) =>
          done(
            new Problem('not_found', { message: 'This server has no console: its setting console is off.' }),
          ),
        handler: () => undefined,
      })
  }
}
