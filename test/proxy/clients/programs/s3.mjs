import { createHash, createHmac } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { Hash } from '@smithy/core/serde'
import { SignatureV4 } from '@smithy/signature-v4'

/*
 * A child that works with the AWS SDK, and knows nothing but its environment. `s3.mjs STEPS`: a list of
 * `[command, input, how]` in JSON; writes what became of each.
 */

// Agents of its own ignore NODE_USE_ENV_PROXY: the SDK takes what leads them to the proxy as an option.
const requestHandler = { httpsAgent: { keepAlive: true, proxyEnv: process.env } }
const client = new S3Client({
  maxAttempts: 1,
  requestHandler,
  ...JSON.parse(process.env.S3_OPTIONS ?? '{}'),
})

function bodyOf({ stream, text, size }) {
  if (size !== undefined) return Buffer.alloc(size, 'mayfly ')
  if (stream === undefined) return text
  return Readable.from(Array.from({ length: stream }, () => Buffer.alloc(64 * 1024, 'm')))
}

async function signerFor(service) {
  const [credentials, region] = [await client.config.credentials(), await client.config.region()]
  return new SignatureV4({
    ...{ credentials, region, service, sha256: Hash.bind(null, 'sha256') },
    ...{ uriEscapePath: service !== 's3', applyChecksum: true },
  })
}

const ACTION = 'Action=AssumeRole&RoleArn=arn:aws:iam:::role/work&RoleSessionName=other&Version=2011-06-15'

/** Any service, as its SDK would call it. */
async function raw({ method = 'POST', service, path, body = ACTION, headers = {}, extra = {}, spoil }) {
  const { protocol, hostname, port, host } = await endpoint(service)
  const [pathname, search = ''] = path.split('?')
  const query = Object.fromEntries(new URLSearchParams(search))
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const request = {
    method,
    protocol,
    hostname,
    port,
    path: pathname,
    query,
    body,
    headers: { host, ...type, ...extra },
  }
  const signed = await (await signerFor(service)).sign(request)
  const sent = { ...signed.headers, ...headers }
  delete sent.host
  if (spoil) sent.authorization = sent.authorization.replace(new RegExp(spoil[0]), spoil[1])
  const reply = await fetch(`${protocol}//${host}${path}`, { method, body, headers: sent })
  return { status: reply.status, body: await reply.text() }
}

/** Signed chunk by chunk, as the SDKs for Java and Go and MinIO's clients upload over plain HTTP. */
async function chunked({ path, chunks, spoil }) {
  const { protocol, hostname, port, host } = await endpoint('s3')
  const data = chunks.map((size) => Buffer.alloc(size, 'c'))
  const head = (size) => `${size.toString(16)};chunk-signature=`
  const length = [...data, Buffer.alloc(0)].reduce(
    (sum, { length: n }) => sum + head(n).length + 64 + 4 + n,
    0,
  )
  const headers = {
    ...{ host, 'content-encoding': 'aws-chunked', 'content-length': String(length) },
    'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    'x-amz-decoded-content-length': String(chunks.reduce((sum, size) => sum + size, 0)),
  }
  const signer = await signerFor('s3')
  const signed = await signer.sign({ method: 'PUT', protocol, hostname, port, path, query: {}, headers })
  let [, previous] = /Signature=(\w+)/.exec(signed.headers.authorization)
  const time = signed.headers['x-amz-date']
  const { secretAccessKey } = await client.config.credentials()
  const hmac = (key, text) => createHmac('sha256', key).update(text).digest()
  const scope = [time.slice(0, 8), await client.config.region(), 's3', 'aws4_request']
  const key = scope.reduce(hmac, `AWS4${secretAccessKey}`)
  const hash = (bytes) => createHash('sha256').update(bytes).digest('hex')
  const parts = [...data, Buffer.alloc(0)].map((bytes, index) => {
    const text = ['AWS4-HMAC-SHA256-PAYLOAD', time, scope.join('/'), previous, hash(''), hash(bytes)]
    previous = hmac(key, text.join('\n')).toString('hex')
    const sent = index === spoil ? '0'.repeat(64) : previous
    return Buffer.concat([Buffer.from(`${head(bytes.length)}${sent}\r\n`), bytes, Buffer.from('\r\n')])
  })
  const { host: _, 'content-length': __, ...sent } = signed.headers
  const reply = await fetch(`${protocol}//${host}${path}`, {
    method: 'PUT',
    headers: sent,
    body: Buffer.concat(parts),
  })
  return { status: reply.status, body: await reply.text() }
}

const UNSIGNED = { 'X-Amz-Content-Sha256': 'UNSIGNED-PAYLOAD' }

/** As `getSignedUrl` does; then fetches it, changed by `change`. */
async function presigned({ method = 'GET', path, change = {} }) {
  const { protocol, hostname, port, host } = await endpoint('s3')
  const signer = await signerFor('s3')
  const request = { method, protocol, hostname, port, path, query: {}, headers: { host, ...UNSIGNED } }
  const { query } = await signer.presign(request, { expiresIn: 60 })
  const url = `${protocol}//${host}${path}?${new URLSearchParams({ ...query, ...change })}`
  const reply = await fetch(url, { method })
  return { url, status: reply.status, body: await reply.text() }
}

async function endpoint(service) {
  const region = await client.config.region()
  return new URL(process.env.AWS_ENDPOINT_URL ?? `https://${service}.${region}.amazonaws.com`)
}

const COMMANDS = {
  DeleteObject: DeleteObjectCommand,
  GetObject: GetObjectCommand,
  ListObjectsV2: ListObjectsV2Command,
  PutObject: PutObjectCommand,
}

async function step([command, input, how = {}]) {
  if (command === 'presign') return presigned(input)
  if (command === 'chunked') return chunked(input)
  if (command === 'raw') return raw(input)
  const Body = bodyOf(how)
  const all = { ...input, ...(Body === undefined ? {} : { Body }) }
  if (how.stream !== undefined) all.ContentLength = how.stream * 64 * 1024
  const { Body: body, $metadata, ...reply } = await client.send(new COMMANDS[command](all))
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
