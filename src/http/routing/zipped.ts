import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Origin } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import { networkOf } from '../../core/network.ts'
import { takeOrRefuse } from '../../core/rates.ts'
import { DOCUMENTS_PER_MINUTE, MINUTE_MS } from '../../domain/limits.ts'

/** A large body that everybody gets. It is made once: as bytes, because a text would be encoded again for each reply. */
export interface Zipped {
  readonly plain: Buffer
  readonly zipped: Buffer
}

export async function zip(plain: Buffer): Promise<Zipped> {
  return { plain, zipped: await promisify(gzip)(plain) }
}

export function sendZipped(
  request: FastifyRequest,
  reply: FastifyReply,
  { plain, zipped }: Zipped,
): FastifyReply {
  const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  reply.header('vary', 'accept-encoding')
  if (takesGzip) reply.header('content-encoding', 'gzip')
  return reply.send(takesGzip ? zipped : plain)
}

const DOCUMENTS = { kind: 'document', perMinute: DOCUMENTS_PER_MINUTE }

/** Sending what is large costs the kernel more than us the request. Throws `rate_limited`. */
export function takeDocument(
  core: Pick<Core, 'rates' | 'store'>,
  { ipAddress }: Origin,
  { kind, perMinute } = DOCUMENTS,
): void {
  const rate = { count: perMinute, perMs: MINUTE_MS }
  const message = 'Too many requests for documents from this network; try again later.'
  takeOrRefuse(core.rates, `${kind}|${networkOf(ipAddress)}`, rate, core.store.now(), message)
}
