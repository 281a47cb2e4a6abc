import { randomUUID } from 'node:crypto'
import type { BackendState, Host } from '../../src/backends/kind.ts'
import { UPSTREAM_TIMEOUT_MS } from '../../src/domain/limits.ts'
import { resolveChecked } from '../../src/egress/address.ts'
import { createEgressFetch } from '../../src/egress/fetch.ts'
import { createListenerCheck, type ListenerRules } from '../../src/egress/listener.ts'
import { createResolver } from '../../src/egress/resolver.ts'

/** Under which real servers run here. */
const SERVERS = ['mysql', 'redis', 'rabbitmq', 'mosquitto', 'openldap', 'postgres']
const lookup = createResolver().addresses

/** A host with the real egress rules and a log that tests can read. */
export function createTestHost(
  name: string,
  rules: Partial<ListenerRules> = {},
): { host: Host; logged(): string } {
  const lines: string[] = []
  const log = {
    warn: (...line: Parameters<typeof write>) => write(...line),
    debug: (...line: Parameters<typeof write>) => write(...line),
  }
  const checkListener = createListenerCheck({ serviceAccounts: SERVERS, localUser: '', log, ...rules })
  const write = (fields: Record<string, unknown>, message: string) => {
    lines.push(JSON.stringify({ ...fields, message }))
  }
  return {
    logged: () => lines.join('\n'),
    host: {
      name,
      // Not of the form of a real one, but as long.
      uid: `be_${randomUUID().replaceAll('-', '').slice(0, 26)}`,
      issuer: `https://mayfly.test/backends/${name}`,
      issuerUrl: 'https://mayfly.test',
      state: createTestState(),
      idToken: () => Promise.reject(new Error('this host has no issuer')),
      now: () => Date.now(),
      timeoutMs: UPSTREAM_TIMEOUT_MS,
      fetch: createEgressFetch({ local: true, timeoutMs: UPSTREAM_TIMEOUT_MS, lookup, checkListener }),
      resolve: (hostname, options) => resolveChecked(hostname, { ...options, lookup }),
      checkListener,
      log,
    },
  }
}

/** In memory, as long as the host. */
export function createTestState(): BackendState {
  let kept: string | undefined
  return {
    read: async () => kept,
    async replace(before, after) {
      if (kept !== before) return false
      kept = after
      return true
    },
  }
}
