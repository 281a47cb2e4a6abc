import type { NotTakenReason } from '../../domain/notice.ts'
import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

export interface TestedReceiver {
  readonly name: string
  readonly isTaken: boolean
  readonly reason?: NotTakenReason | undefined
}

/** Sends a test message, once, and says whether the receiver took it. Throws `not_found`. */
export async function testReceiver(core: Core, actor: Actor, name: string): Promise<TestedReceiver> {
  const tested = await core.notifier.test(name, {
    id: `msg_${core.ids.body()}`,
    type: 'test',
    at: core.store.now(),
    title: 'This is a test',
    lines: [`This receiver, ${name}, works.`],
    data: { receiver: name },
  })
  if (tested === undefined)
    throw new Problem('not_found', { message: 'The configuration of this server has no such receiver.' })
  const { isTaken, reason } = tested
  const entry = audit(core, actor, {
    action: 'notification.tested',
    outcome: isTaken ? 'ok' : 'failed',
    details: { receiver: name, ...(reason === undefined ? {} : { reason }) },
  })
  await commit(core, actor, [entry])
  return { name, isTaken, reason }
}
