import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const CONFIG = '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[]}}'
const DIGEST = 'sha256:'

export interface Registry {
  /** `127.0.0.1:port` */
  readonly host: string
  /** Who came in, by name and password. */
  readonly seen: string[]
  close(): void
}

/** The part of a registry (OCI distribution) that a client needs to look at one image; `isAllowed` says who may. */
export async function startRegistry(
  isAllowed: (name: string, password: string) => boolean,
): Promise<Registry> {
  const { createHash } = await import('node:crypto')
  const hash = (text: string) => DIGEST + createHash('sha256').update(text).digest('hex')
  const type = 'application/vnd.docker.distribution.manifest.v2+json'
  const config = {
    mediaType: 'application/vnd.docker.container.image.v1+json',
    size: CONFIG.length,
    digest: hash(CONFIG),
  }
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: type, config, layers: [] })
  const seen: string[] = []
  const server = createServer((request, response) => {
    const [, encoded = ''] = (request.headers.authorization ?? '').split('Basic ')
    const [name = '', password = ''] = Buffer.from(encoded, 'base64').toString().split(':')
    response.setHeader('docker-distribution-api-version', 'registry/2.0')
    if (!isAllowed(name, password)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="tests"' })
      response.end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}')
      return
    }
    seen.push(`${name}:${password}`)
    const answer = (contentType: string, body: string) =>
      response
        .writeHead(200, { 'content-type': contentType, 'docker-content-digest': hash(body) })
        .end(request.method === 'HEAD' ? '' : body)
    if (request.url?.includes('/manifests/')) answer(type, manifest)
    else if (request.url?.includes('/blobs/')) answer('application/octet-stream', CONFIG)
    else if (request.url?.includes('/tags/')) answer('application/json', '{"name":"image","tags":["latest"]}')
    else answer('application/json', '{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
