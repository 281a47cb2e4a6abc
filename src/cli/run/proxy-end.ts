import { describeEnd, type RunEnd } from './heartbeat.ts'

/** Why a proxy can serve nothing any more: the run has ended, or a placeholder of the credential `name` was misused. */
export type EndOfProxy =
  | { readonly kind: 'run_ended'; readonly reason: RunEnd['reason'] }
  | { readonly kind: 'misused'; readonly name: string }

/** How the run of a proxy ended, in words. */
export function describeProxyEnd(id: string, end: EndOfProxy): string {
  if (end.kind === 'run_ended') return describeEnd(id, { reason: end.reason })
  return `${id} was ended, because a placeholder of ${end.name} was sent where it does not belong`
}
