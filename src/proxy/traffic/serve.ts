import type { HttpUse } from '../../domain/use.ts'
import type { Asked, Known, Verdict } from '../rules/asked.ts'
import { readSigned } from '../sign/read-signed.ts'
import { upstreamHost } from '../sign/upstream.ts'
import type { Context } from './context.ts'
import { exchange } from './exchange.ts'
import { Failure, failureOf, isOfAddress } from './failure.ts'
import type { Inbound, Way } from './inbound/inbound.ts'
import { type Inspected, inspectBody } from './inspect.ts'
import { beginLine, type Line } from './line.ts'
import { refuse } from './own-reply.ts'
import { prepare } from './prepare.ts'
import type { Prepared } from './prepared.ts'
import { type Socketed, switchProtocols } from './upgrade.ts'
import type { Destination } from './upstream/reach.ts'

/** Serves one request: decides, puts the secret in, and moves it and its reply. `socketed`: it may become another protocol. */
export async function serve(ctx: Context, inbound: Inbound, way: Way, socketed?: Socketed): Promise<void> {
  const line = beginLine(ctx, { method: inbound.method, authority: way.authority })
  inbound.onClose(() => line.end())
  try {
    if (way.refused !== undefined) throw new Failure(way.refused)
    const { authority, verdict } = decide(ctx, inbound, way)
    line.authority = authority
    const prepared = await prepare(verdict, inbound, line)
    const to = destinationOf(ctx, way.scheme, authority, prepared.use)
    if (prepared.upgrade !== null && socketed !== undefined) {
      return await switchProtocols({ ctx, inbound, to, prepared, line, socketed })
    }
    const inspected = await inspect(ctx, inbound, prepared, line)
    await exchange({ ctx, inbound, way, to, prepared, line, inspected })
  } catch (error) {
    turnAway(ctx, inbound, line, failureOf(error, 'broken'))
  }
}

function decide(ctx: Context, inbound: Inbound, way: Way): { authority: string; verdict: Verdict } {
  const { method, target, headers, http2 } = inbound
  const authority = authorityOf(inbound, way)
  const asked: Asked = {
    ...{ authority, scheme: way.scheme, method, target, headers },
    ...(http2 !== undefined && { http2 }),
    ...(way.site && { listener: way.site.listener, site: way.site.known }),
  }
  return { authority, verdict: ctx.rules().decide(asked) }
}

/** At a base URL that stands for many hosts, the signature names the one. */
function authorityOf({ method, target, headers }: Inbound, { authority, site }: Way): string {
  if (site === undefined || !isWide(site.known)) return authority
  const { held } = site.known
  const request = { method, target, headers }
  const signed = readSigned(request)
  if ('kind' in signed) throw new Failure(signed.reason, { held })
  const suffix = authority.replace(/^\*\./, '')
  const found = upstreamHost(suffix.replace(/:\d+$/, ''), signed, request)
  if (found === undefined) throw new Failure('service_not_allowed', { held })
  return `${found}${/:\d+$/.exec(suffix)?.[0] ?? ''}`
}

function isWide({ use }: Known): boolean {
  return use.origin.includes('//*.')
}

/** Throws where an authority of no backend may not be reached. */
export function destinationOf(
  ctx: Pick<Context, 'others'>,
  scheme: 'https' | 'http',
  authority: string,
  use: HttpUse | undefined,
): Destination {
  const at = authority.lastIndexOf(':')
  const to = { scheme, host: authority.slice(0, at), port: Number(authority.slice(at + 1)) }
  if (use !== undefined)
    return { ...to, ca: use.ca, accounts: use.accounts, is: use.local ? 'local' : 'backend' }
  if (ctx.others === 'refuse') throw new Failure('others_refused')
  if (scheme === 'http') throw new Failure('plain_others')
  if (to.port !== 443) throw new Failure('port_not_allowed')
  return { ...to, is: 'other' }
}

async function inspect(
  ctx: Context,
  inbound: Inbound,
  prepared: Prepared,
  line: Line,
): Promise<Inspected | undefined> {
  if (prepared.use !== undefined || !inbound.hasBody) return undefined
  const onFault = (failure: Failure) => {
    if (line.abort === undefined) turnAway(ctx, inbound, line, failure)
    else line.abort(failure)
  }
  return inspectBody(inbound, ctx.rules().search, {
    onFault,
    onFound: (found) => {
      line.placeholder = found.name
      line.backend = found.held.backend
      onFault(new Failure('elsewhere', { held: found.held, misused: found }))
    },
  })
}

function turnAway(ctx: Context, inbound: Inbound, line: Line, failure: Failure): void {
  const { reason, held, misused } = failure
  line.reason = reason
  line.backend ??= held?.backend ?? null
  if (misused !== undefined) {
    line.decision = 'misused'
    line.placeholder = misused.name
  } else if (line.decision === 'forwarded' || isOfAddress(failure)) line.decision = 'refused'
  if (inbound.isAnswered) inbound.break()
  else line.status = refuse(inbound, reason)
  if (misused !== undefined) {
    // Before anything that it may end: the alarm must not be lost with it.
    line.end()
    ctx.onMisuse(misused.held)
  }
  if (reason === 'broken' && failure.cause !== undefined)
    ctx.log.warn(`a request failed: ${describe(failure.cause)}`)
}

/** Of our own errors, never their message: it may repeat what was sent. */
function describe(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown'
  const code = 'code' in cause ? String(cause.code) : ''
  const [, place = ''] = /\n\s+at (.*)/.exec(cause.stack ?? '') ?? []
  return [cause.name, code, place].filter((part) => part !== '').join(' ')
}
