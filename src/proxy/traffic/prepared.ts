import type { Transform } from 'node:stream'
import type { HttpUse } from '../../domain/use.ts'
import { createMasks, type Mask, type Masks } from '../mask/mask.ts'
import type { Applied, Refused, Upgrade } from '../rules/asked.ts'
import type { Held, Live } from '../types.ts'
import { Failure } from './failure.ts'
import type { Line } from './line.ts'

/** A request that may go on, as it is sent. */
export interface Prepared {
  readonly target: string
  readonly headers: Applied['headers']
  /** `stream`: that of the client as it comes, through `through` where it is there. */
  readonly body: 'stream' | Buffer
  readonly through: Transform | undefined
  readonly use: HttpUse | undefined
  /** Whose secret is in it. */
  readonly live: Live | undefined
  readonly mask: Mask | undefined
  readonly upgrade: Upgrade | null
}

export function liveOf(held: Held, line: Line, placeholder: string): Live {
  line.placeholder = placeholder
  const live = held.now()
  if (live.state !== 'live') throw new Failure(live.state, { held })
  line.credentialId = live.credentialId
  lastLive.set(held, live)
  return live
}

/** What is made of the secrets of a credential serves all its replies. */
const masks = new WeakMap<Live, Masks>()

/** Also for a credential that gives no secret just now: what it gave before may still open something. */
const lastLive = new WeakMap<Held, Live>()

/** For replies to requests without a secret: an upstream may repeat what it got with another. */
export function maskOfHeld(held: Held): Mask | undefined {
  const now = held.now()
  if (now.state === 'live') lastLive.set(held, now)
  const live = lastLive.get(held)
  return live && maskOf(live)
}

export function maskOf(live: Live): Mask {
  const known = masks.get(live) ?? createMasks(live.secrets.values())
  masks.set(live, known)
  return known.mask()
}

export function isRefused<T extends object>(answer: T | Refused): answer is Refused {
  return 'kind' in answer && answer.kind === 'refuse'
}

export function failureOfRefusal({ reason, held, misused }: Refused): Failure {
  return new Failure(reason, { held, misused })
}
