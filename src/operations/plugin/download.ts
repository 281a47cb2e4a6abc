import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { basename } from 'node:path'
import { MAX_ARTEFACT_BYTES } from '../../app/plugins/artefacts.ts'
import { CliError, usage } from '../../cli/frame/failure.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { findProxy } from '../../cli/session/open.ts'
import { type Artefact, tooLarge } from './artefact.ts'

const MOST_REDIRECTS = 5
const IDLE_MS = 30_000

/** Over https alone, also where it is redirected to. Throws `CliError`. */
export async function download(context: Context, source: string): Promise<Artefact> {
  let url = addressOf(source)
  const first = url
  for (let redirects = 0; ; redirects += 1) {
    const reply = await ask(context, url)
    const { statusCode = 0, headers } = reply
    if (statusCode === 200) {
      const bytes = await readAll(context, reply, first.host)
      return { bytes, origin: `${first.origin}${first.pathname}`, file: basename(first.pathname) }
    }
    reply.destroy()
    if (statusCode < 300 || statusCode > 399 || headers.location === undefined)
      throw failed(url, `answered with status ${statusCode}`)
    if (redirects === MOST_REDIRECTS) throw failed(first, 'redirects too often')
    url = addressOf(new URL(headers.location, url).href)
  }
}

function addressOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'https:' && url.username === '' && url.password === '') return url
  throw usage(
    'A plugin is downloaded over https:// only, without a user in the address.',
    'Download it yourself, compare its hash, and give the file.',
  )
}

async function ask(context: Context, url: URL): Promise<IncomingMessage> {
  const agent = await findProxy(context)
  return new Promise((resolve, reject) => {
    const { signal } = context
    const request = get(url, { signal, timeout: IDLE_MS, ...(agent && { agent }) }, resolve)
    request.on('timeout', () => request.destroy(failed(url, 'does not answer')))
    request.on('error', (error: Error & { code?: string }) => {
      if (signal.aborted) reject(signal.reason)
      else reject(error instanceof CliError ? error : failed(url, `cannot be reached (${error.code})`, error))
    })
  })
}

async function readAll({ out }: Context, reply: IncomingMessage, host: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const length = Number(reply.headers['content-length'] ?? 0)
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > MAX_ARTEFACT_BYTES) throw tooLarge('What is downloaded')
    const share = length > 0 ? `${Math.floor((100 * size) / length)} %` : `${Math.floor(size / 1024)} KiB`
    out.progress(`Downloading from ${host}: ${share}`)
  }
  return Buffer.concat(chunks)
}

const failed = ({ host }: URL, why: string, cause?: unknown) =>
  new CliError('download_failed', `${host} ${why}.`, {
    exit: 3,
    hint: 'Check the address and the network, or download the file yourself and give that.',
    cause,
  })
