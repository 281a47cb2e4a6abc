import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { COMMAND_CLIENT } from '../../domain/people/authorization-request.ts'

/**
 * The command is a public client, which proves nothing, and the only one (RFC 6749 §2.1). Throws `invalid_client`, so that
 * nothing of these grants is open to agents and third parties.
 */
export function requireCommandClient(clientId: string | undefined): void {
  if (clientId !== COMMAND_CLIENT)
    throw new OAuthProblem('invalid_client', 'This grant is only for the command of Mayfly.')
}
