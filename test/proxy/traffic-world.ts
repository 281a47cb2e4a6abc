import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HttpUse } from '../../src/domain/use.ts'
import { createAuthority } from '../../src/proxy/authority/authority.ts'
import { createTraffic } from '../../src/proxy/traffic/create-traffic.ts'
import type { Traffic, TrafficParts } from '../../src/proxy/traffic/parts.ts'
import type { Cuts, Held, Live, RequestLine, Unusable } from '../../src/proxy/types.ts'
import { type Certificates, makeCertificates } from '../support/certificates.ts'

export const SECRET = 'real-Secret+value/0123456789abcdef'
export const PLACEHOLDER = 'mfph_traffic0123456789abcdefghijklm'

export interface TestCuts extends Cuts {
  readonly open: number
}

export function testCuts(): TestCuts {
  const open = new Map<string, Set<() => void>>()
  const ended = new Set<string>()
  const all = (id: string) => {
    const known = open.get(id) ?? new Set()
    open.set(id, known)
    return known
  }
  const cut = (id: string) => {
    ended.add(id)
    const fns = [...all(id)]
    open.delete(id)
    for (const destroy of fns) destroy()
    return fns.length
  }
  return {
    get open() {
      return [...open.values()].reduce((sum, fns) => sum + fns.size, 0)
    },
    track(id, destroy) {
      if (ended.has(id)) {
        destroy()
        return () => undefined
      }
      const fn = () => destroy()
      all(id).add(fn)
      return () => void all(id).delete(fn)
    },
    cut,
    cutAll: () => [...open.keys()].reduce((sum, id) => sum + cut(id), 0),
  }
}

export interface HeldFake extends Held {
  state: Live | Unusable
}

export function heldFake(
  name: string,
  uses: readonly HttpUse[],
  secret = SECRET,
  placeholder = PLACEHOLDER,
): HeldFake {
  const fake: HeldFake = {
    ...{ name, backend: name, type: 'static', uses, placeholders: new Map([['', placeholder]]) },
    state: {
      state: 'live',
      credentialId: `cred_${name}`,
      secrets: new Map([['', secret]]),
      open: new Map(),
      expiresAt: Date.now() + 3_600_000,
    },
    now: () => fake.state,
  }
  return fake
}

export function httpUse(origin: string, more: Partial<HttpUse> = {}): HttpUse {
  return {
    ...{ protocol: 'http', name: 'api', origin, local: true },
    places: [{ in: 'header', name: 'authorization' }],
    allow: [{ methods: ['*'], path: '/**' }],
    deny: [],
    ...more,
  }
}

export interface TrafficWorld {
  readonly traffic: Traffic
  readonly lines: RequestLine[]
  readonly misused: Held[]
  readonly cuts: TestCuts
  readonly warnings: string[]
  /** PEM of the run's authority. */
  readonly certificate: string
  close(): Promise<void>
}

/** A data path whose names all lead to this machine, except those that `names` says. */
export function trafficWorld(
  held: readonly Held[],
  more: Partial<TrafficParts> & { readonly names?: Readonly<Record<string, readonly string[]>> } = {},
): TrafficWorld {
  const lines: RequestLine[] = []
  const misused: Held[] = []
  const warnings: string[] = []
  const cuts = testCuts()
  const authority = createAuthority(Date.now)
  const traffic = createTraffic({
    ...{ held: () => held, authority, cuts, recorder: { record: (line) => lines.push(line) } },
    log: { warn: (message) => warnings.push(message) },
    resolver: { addresses: async (name) => more.names?.[name] ?? ['127.0.0.1'] },
    ...{ isLocal: true, ownServer: [], others: 'inspect', tunnel: [], now: Date.now },
    onMisuse: (one) => misused.push(one),
    ...more,
  })
  return {
    traffic,
    lines,
    misused,
    warnings,
    cuts,
    certificate: authority.certificate,
    close: () => traffic.close(),
  }
}

/** Certificates for every name of the tests, in a directory that is removed by `remove`. */
export function testCertificates(...names: readonly string[]): Certificates & { remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'mf-traffic-'))
  return {
    ...makeCertificates(directory, ...names),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

export async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** As `TrafficParts.connect`: these addresses stand for ports of this machine. */
export function leadingTo(ports: Readonly<Record<string, number>>): NonNullable<TrafficParts['connect']> {
  return (address, port) =>
    connect(ports[address] ?? port, ports[address] === undefined ? address : '127.0.0.1')
}
