import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createRemoteJWKSet, jwtVerify } from 'jose'

/** The part of AWS STS that matters here: it believes the issuer's keys and its own audience, and nothing else. */
export async function startSts(issuer: string, role: string) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const seen: Record<string, unknown>[] = []
  const server: Server = createServer(async (request, response) => {
    const form = new URLSearchParams(await text(request))
    try {
      const token = String(form.get('WebIdentityToken'))
      const { payload } = await jwtVerify(token, keys, { issuer, audience: 'sts.amazonaws.com' })
      if (form.get('Action') !== 'AssumeRoleWithWebIdentity' || form.get('RoleArn') !== role)
        throw new Error('not this role')
      seen.push({ ...payload, session: form.get('RoleSessionName') })
      response.writeHead(200, { 'content-type': 'text/xml' }).end(
        `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
         <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA-${payload.sub}</AccessKeyId>
         <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
         <Expiration>${new Date(Date.now() + 900_000).toISOString()}</Expiration></Credentials>
         </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
      )
    } catch (error) {
      response.writeHead(400, { 'content-type': 'text/xml' }).end(
        `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
         <Code>InvalidIdentityToken</Code><Message>${(error as Error).message}</Message></Error></ErrorResponse>`,
      )
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, seen, close: () => void server.close() }
}
