import { createHash } from 'node:crypto'
import type { Transform } from 'node:stream'
import type { HttpUse } from '../../domain/use.ts'
import { createMask, type Mask } from '../mask/mask.ts'
import type { Applied, Forward, Inject, InjectBody, Refused, Sign, Upgrade, Verdict } from '../rules/asked.ts'
import { readSigned } from '../sign/read-signed.ts'
import { MAX_HASHED_BODY, signAnew } from '../sign/sign-anew.ts'
import type { Held, Live } from '../types.ts'
import { readWhole } from './body.ts'
import { Failure } from './failure.ts'
import type { Inbound } from './inbound/inbound.ts'
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

/** Puts the secret in. Fills the line. Throws `Failure`. */
export async function prepare(verdict: Verdict, inbound: Inbound, line: Line): Promise<Prepared> {
  if (verdict.kind === 'refuse') throw failureOfRefusal(verdict)
  line.path = verdict.template
  line.backend = verdict.held?.backend ?? null
  if (verdict.kind === 'forward') return forwarded(verdict, line)
  if (verdict.kind === 'inject') return injected(verdict, line)
  return verdict.kind === 'sign' ? signed(verdict, inbound, line) : injectedIntoBody(verdict, inbound, line)
}

function forwarded(
  { use, upgrade, clean }: Pick<Forward, 'use' | 'upgrade' | 'clean'>,
  line: Line,
): Prepared {
  line.decision = 'forwarded'
  const { target, headers } = clean()
  return { target, headers, use, upgrade, ...UNCHANGED }
}

const UNCHANGED = { body: 'stream', through: undefined, live: undefined, mask: undefined } as const

function injected({ held, use, upgrade, placeholders, apply }: Inject, line: Line): Prepared {
  const live = liveOf(held, line, placeholders[0].name)
  const applied = apply(live)
  if ('kind' in applied) throw failureOfRefusal(applied)
  line.decision = 'injected'
  const { target, headers } = applied
  return {
    target,
    headers,
    use,
    upgrade,
    body: 'stream',
    through: undefined,
    live,
    mask: maskOf(live, applied.sent),
  }
}

async function injectedIntoBody(verdict: InjectBody, inbound: Inbound, line: Line): Promise<Prepared> {
  const { held, use, upgrade, maxBytes } = verdict
  if (!inbound.hasBody) return forwarded(verdict, line)
  const body = await readWhole(inbound, maxBytes, new Failure('body_too_large', { held }))
  const found = verdict.readBody(body)
  if (found === null) return { ...forwarded(verdict, line), body }
  if (found.kind === 'refuse') throw failureOfRefusal(found)
  const live = liveOf(held, line, found.placeholder.name)
  const applied = found.apply(live)
  if (isRefused(applied)) throw failureOfRefusal(applied)
  line.decision = 'injected'
  const { target, headers } = applied
  const mask = maskOf(live, applied.sent)
  return { target, headers, use, upgrade, body: applied.body, through: undefined, live, mask }
}

async function signed(verdict: Sign, inbound: Inbound, line: Line): Promise<Prepared> {
  const { held, use, upgrade, place, placeholder } = verdict
  const live = liveOf(held, line, placeholder.name)
  const clean = verdict.clean()
  const request = { method: inbound.method, ...clean }
  const read = readSigned(request)
  if (!read.ok) throw new Failure('bad_signature', { held })
  const isHashed = read.signed.payload.kind === 'hashed'
  const tooLarge = new Failure('body_too_large', { held })
  const body = isHashed && inbound.hasBody ? await readWhole(inbound, MAX_HASHED_BODY, tooLarge) : undefined
  const bodyHash = isHashed
    ? createHash('sha256')
        .update(body ?? '')
        .digest('hex')
    : undefined
  const host = clean.headers.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? ''
  const { placeholders } = held
  const anew = signAnew({ request, signed: read.signed, place, live, placeholders, host, bodyHash })
  if (!anew.ok) throw new Failure('bad_signature', { held })
  line.decision = 'injected'
  const { target, headers } = anew
  return {
    target,
    headers,
    use,
    upgrade,
    body: body ?? 'stream',
    through: anew.body,
    live,
    mask: maskOf(live, []),
  }
}

function liveOf(held: Held, line: Line, placeholder: string): Live {
  line.placeholder = placeholder
  const live = held.now()
  if (live.state !== 'live') throw new Failure(live.state, { held })
  line.credentialId = live.credentialId
  return live
}

function maskOf(live: Live, sent: readonly string[]): Mask {
  return createMask(live.secrets.values(), sent)
}

function isRefused(applied: object): applied is Refused {
  return 'kind' in applied
}

function failureOfRefusal({ reason, held, misused }: Refused): Failure {
  return new Failure(reason, { held, misused })
}
