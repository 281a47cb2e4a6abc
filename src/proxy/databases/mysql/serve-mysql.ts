import { farewell } from '../copy.ts'
import { loginOf } from '../login-of.ts'
import type { Protocol, Visit } from '../parts.ts'
import { badStartup, databaseNotPermitted, Refusal } from '../refusal.ts'
import { isSameText } from '../same-text.ts'
import { ServerError } from '../server-error.ts'
import { withChild, withUpstream } from '../turns.ts'
import { CACHING_SHA2, FAST_OK, nativeAnswer, sha2Answer } from './answers.ts'
import { watchCommands } from './commands.ts'
import {
  Flag,
  greetingFor,
  NATIVE,
  newScramble,
  offeredFlags,
  parseResponse,
  type Response,
} from './handshake.ts'
import { logIn, MORE, readGreeting } from './log-in.ts'
import { errorPacket, packet, readPacket, zeroEnded } from './packets.ts'

/** What the next packet to the child has as its number; 0: it was not greeted yet. */
interface Turn {
  sequence: number
}

export function serveMysql(): Protocol {
  return async (visit) => {
    const turn: Turn = { sequence: 0 }
    try {
      await openSession(visit, turn)
    } catch (error) {
      const { sequence } = turn
      if (error instanceof Refusal) {
        await farewell(visit.child, errorPacket(sequence, error, sequence === 0))
      }
      if (error instanceof ServerError) await farewell(visit.child, packet(sequence, error.bytes))
      throw error
    }
  }
}

async function openSession(visit: Visit, turn: Turn): Promise<void> {
  const { child, use } = visit
  const live = visit.admit()
  const givesLogin = use.tls !== 'verify-full'
  const { raw, greeting } = await withUpstream(visit, async (signal) => {
    const connected = await visit.connect({ givesLogin })
    return { raw: connected, greeting: await readGreeting(connected, signal) }
  })
  const scramble = newScramble()
  child.write(packet(0, greetingFor(greeting, scramble)))
  const response = await readLogin(visit, turn, scramble)
  requirePermitted(visit, response.database)
  visit.decide('injected')
  const { upstream, accepted } = await withUpstream(visit, (signal) =>
    logIn(raw, {
      ...{ use, greeting, response, signal, secure: visit.secure },
      ...loginOf(live),
    }),
  )
  child.write(packet(turn.sequence, accepted))
  const flags = response.flags & offeredFlags(greeting)
  await visit.join(upstream, watchCommands({ hasQueryAttributes: (flags & Flag.queryAttributes) !== 0 }))
}

/** Throws `Refusal`, at the port also for a child that does not know the placeholder. */
async function readLogin(visit: Visit, turn: Turn, scramble: Buffer): Promise<Response> {
  const { child } = visit
  const read = async () => {
    const received = await withChild(visit, (signal) => readPacketOf(signal))
    turn.sequence = received.sequence + 1
    return received.payload
  }
  const readPacketOf = (signal: AbortSignal) => readPacket(child, signal, badStartup)
  turn.sequence = 2
  const response = parseResponse(await read())
  // From version 9 on the programs of MySQL have the old method only as a plugin, which not every system has.
  const isSha2 = response.method === CACHING_SHA2
  let { answer } = response
  if (response.method !== NATIVE) {
    child.write(packet(turn.sequence, switchTo(isSha2 ? CACHING_SHA2 : NATIVE, scramble)))
    answer = await read()
  }
  const answerOf = isSha2 ? sha2Answer : nativeAnswer
  const isIt = (one: string) => isSameText(answer, answerOf(one, scramble))
  if (visit.provesItself && !isIt(visit.placeholder)) throw visit.refuseLogin(isIt)
  // One without a password, at the socket, does not wait for this.
  if (isSha2 && answer.length > 1) {
    child.write(packet(turn.sequence, Buffer.of(MORE, FAST_OK)))
    turn.sequence += 1
  }
  return response
}

/** "Protocol::AuthSwitchRequest". */
const switchTo = (method: string, scramble: Buffer) =>
  Buffer.concat([Buffer.of(0xfe), zeroEnded(method), zeroEnded(scramble)])

function requirePermitted({ use: { databases } }: Visit, database: string): void {
  if (database === '' || databases === undefined || databases.includes(database)) return
  throw databaseNotPermitted(databases)
}
