import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor, AgentCaller } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import type { IssueCommand, IssuedCredential } from '../../core/credentials/issue-attempt.ts'
import { issueCredential } from '../../core/credentials/issue-credential.ts'
import { revokeUndelivered } from '../../core/credentials/revoke-credential.ts'
import { MAX_METADATA_BYTES } from '../../domain/limits.ts'
import { invalid } from '../../domain/problems.ts'

/** The parts of a call that issuing needs. */
export interface Asked {
  readonly actor: Actor<AgentCaller>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/**
 * Issues a credential, and revokes it when the caller hangs up before the whole reply is written: nobody has the secret
 * then. Throws as `issueCredential`, and `invalid_request` for metadata that is too large.
 */
export async function issueToCaller(
  core: Core,
  { actor, request, reply }: Asked,
  asked: Omit<IssueCommand, 'idempotencyKey'>,
): Promise<IssuedCredential> {
  requireMetadata(asked.metadata)
  const idempotencyKey = request.headers['idempotency-key'] as string | undefined
  const issued = await issueCredential(core, actor, { ...asked, idempotencyKey })
  const undelivered = { ...issued, isClaimed: idempotencyKey !== undefined }
  const takeBack = () => void revokeUndelivered(core, actor, undelivered)
  if (request.raw.socket.destroyed) takeBack()
  else {
    // The reply has not finished while bytes wait for a client that does not read.
    reply.raw.once('close', takeBack)
    reply.raw.once('finish', () => reply.raw.off('close', takeBack))
  }
  return issued
}

/** Free-form metadata is limited in bytes (decisions.md §1.9); the schema limits the number of keys. */
export function requireMetadata(metadata: object | undefined): void {
  if (metadata === undefined) return
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalid('"metadata" is larger than 8192 bytes.')
}
