import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { pause } from '../../client/abort.ts'
import { defineVerb } from '../frame/verb.ts'
import type { GuardMessage } from '../run/guard.ts'
import { trackIssued } from '../run/issued-credentials.ts'
import { takeSignals } from '../run/signals.ts'
import { openAgentSession } from '../session/open.ts'

const PIPE = 3
const ROUNDS = 20
const BETWEEN_MS = 15_000
const ROUND_MS = 15_000

export const verb = defineVerb({
  description:
    'Guards a `mayfly run --guard`, which starts it. If the run is killed or cannot revoke its credentials, the guard revokes them and removes the files.',
  examples: [
    { command: 'mayfly run --guard --backend demo -- ./job.sh', about: 'starts a run and its guard' },
  ],
  exits: [3, 4],
  ownSignals: true,
  run: async (context) => {
    // Signals must not end the guard; only the end of the run does.
    const release = takeSignals(() => {})
    const { ids, directories, isSettled } = await listen()
    if (isSettled) return
    for (const directory of directories) await rm(directory, { recursive: true, force: true }).catch(() => {})
    for (let round = 0; round < ROUNDS && ids.size > 0; round += 1) {
      if (round > 0) await pause(BETWEEN_MS, context.signal)
      // Log in again each round: the network may have been down.
      const issued = await openAgentSession(context).then(
        ({ client }) => trackIssued(client, context.now),
        () => undefined,
      )
      for (const id of ids) issued?.adopt(id)
      await issued?.revokeAll(AbortSignal.timeout(ROUND_MS))
      for (const { id, revoked } of issued?.outcomes() ?? []) if (revoked) ids.delete(id)
    }
    release()
  },
})

/** Reads messages until the other end of the pipe closes. */
async function listen() {
  const ids = new Set<string>()
  const directories: string[] = []
  let isSettled = false
  for await (const line of createInterface({ input: createReadStream('', { fd: PIPE }) })) {
    const message = parseMessage(line)
    if (message === undefined) continue
    if ('obtained' in message) ids.add(message.obtained)
    else if ('revoked' in message) ids.delete(message.revoked)
    else if ('directory' in message) directories.push(message.directory)
    else isSettled = message.settled
  }
  return { ids, directories, isSettled }
}

/** Undefined for an incomplete line: the run may be killed while writing it. */
function parseMessage(line: string): GuardMessage | undefined {
  try {
    return JSON.parse(line) as GuardMessage
  } catch {
    return undefined
  }
}
