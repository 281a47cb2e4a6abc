import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { createRemoteJWKSet, jwtVerify } from 'jose'

/** The part of an API server that matters here: it believes the issuer's tokens and the authority's certificates. */
export async function startKubeApi(issuer: string, tls: { cert: string; key: string; ca: string }) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const seen: string[] = []
  const server = createServer(
    { ...tls, requestCert: true, rejectUnauthorized: false },
    async (request, response) => {
      const socket = request.socket as TLSSocket
      const token = request.headers.authorization?.replace(/^Bearer /, '')
      const who = socket.authorized
        ? `certificate:${socket.getPeerCertificate().subject.CN}`
        : await jwtVerify(String(token), keys, { issuer, audience: 'kubernetes' }).then(
            ({ payload }) => `token:${payload['agent_name']}`,
            () => undefined,
          )
      response.setHeader('content-type', 'application/json')
      if (who === undefined) {
        const status = {
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          reason: 'Unauthorized',
          code: 401,
        }
        response.writeHead(401).end(JSON.stringify(status))
        return
      }
      seen.push(who)
      response.end(
        JSON.stringify({ major: '1', minor: '32', gitVersion: `v1.32.0-${who.replace(':', '-')}` }),
      )
    },
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url, seen, close }
}
