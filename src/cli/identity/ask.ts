import { pause } from '../../client/abort.ts'
import { MayflyError, UnreachableError } from '../../client/errors.ts'
import type { CallOptions } from '../../client/send.ts'
import type { TransportReply } from '../../client/transport.ts'
import { isLoopbackHost } from '../../domain/network/loopback.ts'
import { failureOf } from '../frame/failure.ts'
import { proxyOf } from '../frame/proxy.ts'
import { nodeTransport } from '../frame/transport.ts'
import type { Context } from '../frame/verb.ts'
import { connectorOf } from '../session/local-server.ts'
import { noToken } from './source.ts'

export interface Question extends CallOptions {
  readonly url: string
  readonly method?: 'GET' | 'PUT' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs?: number
  /** How many times to ask at most; 3 by default. */
  readonly tries?: number
}

/** An answer holds one token, or one set of credentials. */
const MAX_BYTES = 64 * 1024
const TIMEOUT_MS = 5_000
const PAUSE_MS = 150

/**
 * Asks a source over HTTP, and again if it is busy. Follows no redirect: what is sent is for the place that the environment
 * names. Throws `CliError` unless it answers with 200.
 */
export async function ask(context: Context, title: string, question: Question): Promise<TransportReply> {
  const { tries = 3, signal } = question
  for (let tried = 1; ; tried += 1) {
    const reply = await askOnce(context, title, question)
    signal?.throwIfAborted()
    if (reply.status === 200) return reply
    const isBusy = reply.status === 429 || reply.status >= 500
    if (!isBusy || tried >= tries) throw noToken(title, `it answered with status ${reply.status}.`)
    await pause(PAUSE_MS * tried, signal)
  }
}

async function askOnce(
  context: Context,
  title: string,
  { url: address, method = 'GET', headers = {}, body, timeoutMs = TIMEOUT_MS, signal }: Question,
): Promise<TransportReply> {
  const url = readUrl(context, title, address)
  const isSecure = url.protocol === 'https:'
  const transport = nodeTransport({
    maxBytes: MAX_BYTES,
    proxy: isSecure && !isLoopbackHost(url.hostname) ? proxyOf(context.env) : undefined,
    connect: connectorOf(context),
  })
  try {
    return await transport({ method, url: url.href, headers, body, timeoutMs, signal })
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof UnreachableError || error instanceof MayflyError)
      throw noToken(title, lower(failureOf(error).message), undefined, error)
    throw error
  }
}

const lower = (text: string) => `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`

/** Metadata services answer without TLS, on addresses that no router passes on. */
const LINK_LOCAL = /^(?:169\.254\.\d+\.\d+|\[fd00:ec2::[0-9a-f]+\]|metadata\.google\.internal\.?)$/

function readUrl({ env }: Context, title: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username + url.password !== '')
    throw noToken(title, 'its address is not valid.')
  const isPlain = url.protocol === 'http:'
  const isNear = isLoopbackHost(url.hostname) || LINK_LOCAL.test(url.hostname)
  if (isPlain && !isNear && env['MAYFLY_ALLOW_HTTP'] !== '1')
    throw noToken(
      title,
      `the token would travel from ${url.origin} unencrypted.`,
      'Use https://, or set MAYFLY_ALLOW_HTTP=1 in a trusted network.',
    )
  return url
}

/** Whether a metadata service answers at once, as only that of this cloud does. Never rejects. */
export async function isAnswered(
  context: Context,
  question: Question,
  isRight: (reply: TransportReply) => boolean,
): Promise<boolean> {
  try {
    return isRight(await ask(context, '', { timeoutMs: 1_000, tries: 1, ...question }))
  } catch {
    return false
  }
}
