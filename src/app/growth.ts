import type { Config } from '../config/config.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import type { Log } from '../log/log.ts'

/**
 * Issuing has no rate by default (decisions.md §9.3), and everything is kept for ever: what one agent can store is bounded by the
 * disk alone. Said once, by a server that others can reach.
 */
export function warnOfGrowth(
  { issuer, issueRate, retentionMs }: Pick<Config, 'issuer' | 'issueRate' | 'retentionMs'>,
  log: Pick<Log, 'warn'>,
): void {
  if (issueRate !== undefined || retentionMs > 0 || isLoopbackHost(new URL(issuer).hostname)) return
  log.warn(
    { settings: ['limits.issue_rate', 'retention'] },
    'nothing bounds what is stored: one agent that issues without pause adds up to 21 GB an hour. Set limits.issue_rate, such as 100/minute, or retention',
  )
}
