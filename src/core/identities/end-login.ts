import type { Agent } from '../../domain/agent.ts'
import { JWT_TOLERANCE_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import { endSteps } from '../agents/end-agent.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded } from '../authentication/authenticate.ts'
import type { AccessToken, Actor, AgentCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { runEndSteps } from '../runs/end-run.ts'

const TRIES = 5

type Parts = Pick<Core, 'store' | 'ids' | 'meter'>

/**
 * Ends the keyless login that the caller's token came from: the token, its run with all credentials of that, and the agent when
 * no other login of it lives, in one commit. Throws `not_allowed` for an agent with secrets, `unauthorized` when the token or
 * its agent has ended meanwhile, and `conflict`.
 */
export async function endLogin(core: Parts, actor: Actor<AgentCaller>): Promise<void> {
  const { agentId, accessToken } = actor.caller
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const agent = await core.store.agents.findLiving(agentId)
    if (agent === undefined) throw agentEnded()
    if (accessToken === undefined || agent.identity === null)
      throw new Problem('not_allowed', {
        message: 'This agent logs in with secrets of its own; DELETE /v1/self ends it.',
      })
    const { revoked, change, runs } = await planEnd(core, actor, agent, accessToken)
    // Not with the guards of the caller, which would hold the row that this changes: `touch` waits for whoever ends the token.
    const outcome = await commit(core, { caller: undefined, origin: actor.origin }, change, { urgent: true })
    if (outcome.done) return core.meter.runEnded('completed', runs)
    if (change[outcome.step] === revoked) throw agentEnded()
  }
  throw new Problem('conflict', { message: 'The logins of this agent are changing; try again.' })
}

async function planEnd(
  core: Parts,
  actor: Actor<AgentCaller>,
  agent: Agent,
  { jti, expiresAt }: AccessToken,
): Promise<{ revoked: Step; change: Step[]; runs: number }> {
  const { agents, logins, tokens } = core.store
  const now = core.store.now()
  const login = { jti, agentId: agent.id }
  const isLast = !(await logins.hasOther(login, now))
  const ofRun = isLast ? [] : await ownRunSteps(core, actor)
  // Refused when the token was revoked in the meantime.
  const revoked = tokens.revoke(jti, expiresAt + JWT_TOLERANCE_MS)
  const change = [
    // Whichever it is, it changes the row of the agent first.
    ...(isLast ? await endSteps(core, actor, agent, 'logged_out') : agents.touch(agent.id)),
    logins.requireOther(login, isLast, now),
    revoked,
    logins.drop(jti),
    audit(core, actor, { action: 'token.revoked', details: { jti, reason: 'logged_out' } }),
    ...ofRun,
  ]
  return { revoked, change, runs: ofRun.length === 0 ? 0 : 1 }
}

async function ownRunSteps(core: Parts, actor: Actor<AgentCaller>): Promise<Step[]> {
  const { run } = actor.caller
  if (run === undefined) return []
  const found = await core.store.runs.find(run.id)
  return found === undefined || found.endedAt !== null ? [] : runEndSteps(core, actor, run.id, 'completed')
}
