import type { Forward, Inject, InjectBody, Verdict } from '../rules/asked.ts'
import { readWhole } from './body.ts'
import { Failure } from './failure.ts'
import type { Inbound } from './inbound/inbound.ts'
import type { Line } from './line.ts'
import { failureOfRefusal, isRefused, liveOf, maskOf, maskOfHeld, type Prepared } from './prepared.ts'
import { signedAnew } from './signed.ts'

/** Puts the secret in. Fills the line. Throws `Failure`. */
export async function prepare(verdict: Verdict, inbound: Inbound, line: Line): Promise<Prepared> {
  if (verdict.kind === 'refuse') throw failureOfRefusal(verdict)
  line.path = verdict.template
  line.backend = verdict.held?.backend ?? null
  if (verdict.kind === 'forward') return forwarded(verdict, line)
  if (verdict.kind === 'inject') return injected(verdict, line)
  return verdict.kind === 'sign'
    ? signedAnew(verdict, inbound, line)
    : injectedIntoBody(verdict, inbound, line)
}

function forwarded(
  { held, use, upgrade, clean }: Pick<Forward, 'held' | 'use' | 'upgrade' | 'clean'>,
  line: Line,
): Prepared {
  line.decision = 'forwarded'
  const { target, headers } = clean()
  return { target, headers, use, upgrade, ...UNCHANGED, mask: held && maskOfHeld(held) }
}

const UNCHANGED = { body: 'stream', through: undefined, live: undefined } as const

function injected({ held, use, upgrade, placeholders, apply }: Inject, line: Line): Prepared {
  const live = liveOf(held, line, placeholders[0].name)
  const applied = apply(live)
  if (isRefused(applied)) throw failureOfRefusal(applied)
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
    mask: maskOf(live),
  }
}

async function injectedIntoBody(verdict: InjectBody, inbound: Inbound, line: Line): Promise<Prepared> {
  const { held, use, upgrade, maxBytes } = verdict
  if (!inbound.hasBody) return forwarded(verdict, line)
  const body = await readWhole(inbound, maxBytes, new Failure('body_too_large', { held }))
  const found = verdict.readBody(body)
  if (found === null) return { ...forwarded(verdict, line), body }
  if (isRefused(found)) throw failureOfRefusal(found)
  const live = liveOf(held, line, found.placeholder.name)
  const applied = found.apply(live)
  if (isRefused(applied)) throw failureOfRefusal(applied)
  line.decision = 'injected'
  const { target, headers } = applied
  const mask = maskOf(live)
  return { target, headers, use, upgrade, body: applied.body, through: undefined, live, mask }
}
