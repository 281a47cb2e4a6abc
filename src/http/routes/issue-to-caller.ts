import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AgentCaller, Origin } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import { issueCredential } from '../../core/credentials/issue-credential.ts'
import type { IssueCommand, IssuedCredential } from '../../core/credentials/issue-plan.ts'
import { revokeUndelivered } from '../../core/credentials/revoke-credential.ts'

/** What of a call it needs. */
export interface Asked {
  readonly caller: AgentCaller
  readonly origin: Origin
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/**
 * Issues, and ends it again when the caller hangs up before the reply is written whole: nobody has the secret then.
 * Throws as `issueCredential`.
 */
export async function issueToCaller(
  core: Core,
  { caller, origin, request, reply }: Asked,
  asked: Omit<IssueCommand, 'idempotencyKey'>,
): Promise<IssuedCredential> {
  const idempotencyKey = request.headers['idempotency-key'] as string | undefined
  const issued = await issueCredential(core, caller, { ...asked, idempotencyKey }, origin)
  const takeBack = () => void revokeUndelivered(core, caller, issued, origin)
  if (request.raw.socket.destroyed) takeBack()
  else {
    // Closing before it finished, and it has not finished while bytes wait for a client that reads none.
    reply.raw.once('close', takeBack)
    reply.raw.once('finish', () => reply.raw.off('close', takeBack))
  }
  return issued
}
