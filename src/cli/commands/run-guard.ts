import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { pause } from '../../client/abort.ts'
import type { IssueRequest } from '../../client/wire.ts'
import { parseJson } from '../../domain/formats/json.ts'
import { defineVerb } from '../frame/verb.ts'
import type { GuardMessage } from '../run/guard.ts'
import { type IssuedCredentials, type IssueEvent, trackIssued } from '../run/issued-credentials.ts'
import { takeSignals } from '../run/signal-phases.ts'
import { openAgentSession } from '../session/open.ts'

const PIPE = 3
const ROUNDS = 20
const BETWEEN_MS = 15_000
const ROUND_MS = 15_000

export const verb = defineVerb({
  description:
    'Guards a `mayfly run --guard`, which starts it. If the run is killed or cannot revoke its credentials, the guard revokes them, repeats the requests whose answer was lost to revoke what they issued, and removes the files.',
  examples: { 'mayfly run --guard --backend demo -- ./job.sh': 'starts a run and its guard' },
  exits: [3, 4],
  ownSignals: true,
  run: async (context) => {
    // Signals must not end the guard; only the end of the run does.
    const release = takeSignals(() => {})
    const { left, directories, isSettled } = await listen()
    if (isSettled) return
    for (const directory of directories) await rm(directory, { recursive: true, force: true }).catch(() => {})
    for (let round = 0; round < ROUNDS && !left.isEmpty(); round += 1) {
      if (round > 0) await pause(BETWEEN_MS, context.signal)
      // Log in again each round: the network may have been down.
      const client = await openAgentSession(context).then(
        (session) => session.client,
        () => undefined,
      )
      if (client === undefined) continue
      const issued = trackIssued(client, context.now, left.hear)
      left.handTo(issued)
      await issued.revokeAll(AbortSignal.timeout(ROUND_MS))
    }
    release()
  },
})

/** What is still to be revoked, by all that is known. */
function createLeft() {
  const ids = new Set<string>()
  const requests = new Map<string, IssueRequest>()
  return {
    hear: (event: IssueEvent): void => {
      if ('asked' in event) requests.set(event.asked, event.request)
      else if ('refused' in event) requests.delete(event.refused)
      else if ('revoked' in event) ids.delete(event.revoked)
      else {
        requests.delete(event.key)
        ids.add(event.obtained)
      }
    },
    isEmpty: () => ids.size === 0 && requests.size === 0,
    handTo: ({ adopt, adoptRequest }: IssuedCredentials): void => {
      for (const id of ids) adopt(id)
      for (const [key, request] of requests) adoptRequest(key, request)
    },
  }
}

/** Reads messages until the other end of the pipe closes. */
async function listen() {
  const left = createLeft()
  const directories: string[] = []
  let isSettled = false
  for await (const line of createInterface({ input: createReadStream('', { fd: PIPE }) })) {
    const message = parseJson(line) as GuardMessage | undefined
    // An incomplete line: the run may be killed while writing it.
    if (message === undefined) continue
    if ('directory' in message) directories.push(message.directory)
    else if ('settled' in message) isSettled = message.settled
    else left.hear(message)
  }
  return { left, directories, isSettled }
}
