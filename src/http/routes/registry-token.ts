import { serveToken } from '../../core/credentials/serve-token.ts'
import { addRoute, type Http } from '../routing/route.ts'
import { timestamp } from './wire.ts'

/** The realm of a container registry: docker, podman and others ask here with the password of a credential. */
export function registryTokenRoutes(http: Http): void {
  addRoute(
    http,
    'GET /backends/:backend/token',
    async ({ params: { backend }, query: { scope = [] }, actor: { origin }, request }) => {
      const { authorization } = request.headers
      const served = await serveToken(http.core, { backend, authorization, asked: scope }, origin)
      return {
        token: served.token,
        access_token: served.token,
        expires_in: Math.max(1, Math.floor((served.expiresAt - served.issuedAt) / 1_000)),
        issued_at: timestamp(served.issuedAt),
      }
    },
  )
}
