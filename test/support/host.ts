import { randomUUID } from 'node:crypto'
import { createEgressFetch } from '../../src/backends/egress.ts'
import { resolveChecked } from '../../src/backends/egress-address.ts'
import type { BackendState, Host } from '../../src/backends/kind.ts'
import { createResolver } from '../../src/backends/resolver.ts'
import { UPSTREAM_TIMEOUT_MS } from '../../src/domain/limits.ts'

const lookup = createResolver().addresses

/** A host with the real egress rules and a log that tests can read. */
export function createTestHost(name: string): { host: Host; logged(): string } {
  const lines: string[] = []
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
      fetch: createEgressFetch({ local: true, timeoutMs: UPSTREAM_TIMEOUT_MS, lookup }),
      resolve: (hostname, options) => resolveChecked(hostname, { ...options, lookup }),
      log: { warn: write, debug: write },
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
