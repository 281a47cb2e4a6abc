import { Readable } from 'node:stream'
import * as s3 from '@aws-sdk/client-s3'
import { Hash } from '@smithy/core/serde'
import { SignatureV4 } from '@smithy/signature-v4'

/*
 * A child that works with the AWS SDK, and knows nothing but its environment. `s3.mjs STEPS`: a list of
 * `[command, input, how]` in JSON; writes what became of each.
 */

// Agents of its own ignore NODE_USE_ENV_PROXY: the SDK takes what leads them to the proxy as an option.
const requestHandler = { httpsAgent: { keepAlive: true, proxyEnv: process.env } }
const client = new s3.S3Client({ maxAttempts: 1, requestHandler, ...JSON.parse(process.env.S3_OPTIONS ?? '{}') })

function bodyOf({ stream, text, size }) {
  if (size !== undefined) return Buffer.alloc(size, 'mayfly ')
  if (stream === undefined) return text
  return Readable.from(Array.from({ length: stream }, () => Buffer.alloc(64 * 1024, 'm')))
}

/** As `getSignedUrl` does; then fetches it, changed by `change`. */
async function presigned({ method = 'GET', path, change = {} }) {
  const { protocol, hostname, port } = await endpoint()
  const signer = new SignatureV4({
    ...{ credentials: await client.config.credentials(), region: await client.config.region() },
    ...{ service: 's3', sha256: Hash.bind(null, 'sha256'), uriEscapePath: false, applyChecksum: false },
  })
  const host = port === undefined ? hostname : `${hostname}:${port}`
  const request = { method, protocol, hostname, port, path, query: {}, headers: { host } }
  const { query } = await signer.presign(request, { expiresIn: 60 })
  const url = `${protocol}//${host}${path}?${new URLSearchParams({ ...query, ...change })}`
  const reply = await fetch(url, { method })
  return { url, status: reply.status, body: await reply.text() }
}

async function endpoint() {
  const custom = await client.config.endpoint?.()
  if (custom) return custom
  return { protocol: 'https:', hostname: `s3.${await client.config.region()}.amazonaws.com` }
}

async function step([command, input, how = {}]) {
  if (command === 'presign') return presigned(input)
  const Body = bodyOf(how)
  const all = { ...input, ...(Body === undefined ? {} : { Body }) }
  if (how.stream !== undefined) all.ContentLength = how.stream * 64 * 1024
  const { Body: body, $metadata, ...reply } = await client.send(new s3[`${command}Command`](all))
  return { status: $metadata.httpStatusCode, ...reply, ...(body && { body: await body.transformToString() }) }
}

const done = []
for (const one of JSON.parse(process.argv[2])) {
  done.push(
    await step(one).catch((error) => ({
      error: error.name,
      message: error.message,
      status: error.$metadata?.httpStatusCode,
    })),
  )
}
console.log(JSON.stringify(done))
