import { isLoopbackHost } from '../../domain/network/loopback.ts'
import { CONSOLE_FILES } from '../console/files.ts'
import { addRoute, type Http } from '../routing/route.ts'
import { takeDocument } from '../routing/zipped.ts'

/** Nothing but our own files, nothing inline, no text that becomes markup or code, and in nobody's frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

export function consolePageRoutes(http: Http): void {
  const { relyingParty } = http.core.settings
  const host = new URL(relyingParty.origin).host

  addRoute(http, 'GET /console', ({ actor, request, reply }) => {
    takeDocument(http.core, actor.origin)
    // Browsers keep the fragment. Elsewhere a proxy may have its own name for us.
    if (isLoopbackHost(request.hostname) && isLoopbackHost(relyingParty.id) && request.host !== host)
      return reply.redirect(relyingParty.consoleUrl)
    return reply
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', POLICY)
      .header('cross-origin-opener-policy', 'same-origin')
      .header('cross-origin-resource-policy', 'same-origin')
      .header('permissions-policy', 'publickey-credentials-get=(self), publickey-credentials-create=(self)')
      .header('x-frame-options', 'DENY')
      .header('referrer-policy', 'no-referrer')
      .send(CONSOLE_FILES.page)
  })

  addRoute(http, 'GET /console/console.js', ({ actor, reply }) => {
    takeDocument(http.core, actor.origin)
    return reply.header('content-type', 'text/javascript; charset=utf-8').send(CONSOLE_FILES.script)
  })

  addRoute(http, 'GET /console/console.css', ({ actor, reply }) => {
    takeDocument(http.core, actor.origin)
    return reply.header('content-type', 'text/css; charset=utf-8').send(CONSOLE_FILES.style)
  })
}
