import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

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
