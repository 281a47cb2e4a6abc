import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { newSigner, times } from './identity-tokens.ts'
import { type PresetName, presetToken } from './preset-tokens.ts'

type Claims = Readonly<Record<string, unknown>>

/** A look-alike of a platform that signs who its workloads are: discovery, keys, and GitHub's endpoint for tokens of a job. */
export interface WorkloadIssuer {
  readonly url: string
  /** A token with the claims that the platform documents. Claims that are undefined are left out. */
  sign(claims?: Claims): string
  /** Its public keys. */
  readonly jwks: { readonly keys: readonly unknown[] }
  /** The variables of a job that may ask for tokens. */
  readonly jobEnv: Readonly<Record<string, string>>
  /** The audiences that jobs have asked for, in order. */
  readonly asked: readonly string[]
  /** What the next requests of jobs are answered with, before they get a token. */
  readonly failures: number[]
  close(): Promise<void>
}

const REQUEST_TOKEN = 'request-token-of-the-job'

/** On a free port of this machine, so that its entry needs `local: true`. `ofJob`: claims of the tokens that the job asks for. */
export async function startWorkloadIssuer(preset: PresetName, ofJob: Claims = {}): Promise<WorkloadIssuer> {
  const { claims, header, alg } = presetToken(preset)
  const signer = newSigner(alg)
  const jwks = { keys: [signer.jwk] }
  const asked: string[] = []
  const failures: number[] = []
  const sign = (more: Claims = {}) =>
    signer.sign(
      { ...claims, ...times(Date.now()), jti: randomUUID(), ...ofJob, iss: url, ...more },
      { ...header },
    )
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', url)
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (pathname === '/.well-known/openid-configuration')
      return json(200, { issuer: url, jwks_uri: `${url}/jwks` })
    if (pathname === '/jwks') return json(200, jwks)
    if (pathname !== '/idtoken') return json(404, {})
    const failure = failures.shift()
    if (failure !== undefined) return json(failure, { message: 'busy' })
    if (request.headers.authorization !== `Bearer ${REQUEST_TOKEN}`) return json(401, {})
    const audience = searchParams.get('audience') ?? 'https://github.com/octo-org'
    asked.push(audience)
    return json(200, { count: 1, value: sign({ aud: audience }) })
  }
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    sign,
    jwks,
    asked,
    failures,
    jobEnv: {
      ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/idtoken?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
