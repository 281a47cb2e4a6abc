import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseUse } from '../../src/domain/use.ts'
import { openDatabase } from '../../src/proxy/databases/open-database.ts'
import type { DatabaseParts, OpenedDatabase } from '../../src/proxy/databases/parts.ts'
import type { Cuts, Live, RequestLine, Unusable } from '../../src/proxy/types.ts'

export const PLACEHOLDER = 'mfp-placeholder-0123456789abcdefghijk'

export interface Account {
  readonly username: string
  readonly password: string
  readonly database?: string
}

export interface ProxiedDatabase extends OpenedDatabase, AsyncDisposable {
  readonly lines: RequestLine[]
  readonly warnings: string[]
  readonly cuts: Cuts
  /** What requests get from now on. */
  give(state: Live | Unusable): void
  current(): Live | Unusable
  /** Resolves with the line of the next connection that ends so. */
  nextLine(decision?: RequestLine['decision']): Promise<RequestLine>
}

export interface ProxiedOptions extends Partial<Omit<DatabaseParts, 'use' | 'held' | 'cuts' | 'recorder'>> {
  readonly use: Partial<DatabaseUse> & Pick<DatabaseUse, 'protocol' | 'port'>
  readonly account: Account
}

export const liveOf = ({ username, password, database = '' }: Account, credentialId = 'cred_1'): Live => ({
  state: 'live',
  credentialId,
  secrets: new Map([['password', password]]),
  open: new Map([
    ['username', username],
    ['database', database],
  ]),
  expiresAt: Date.now() + 3_600_000,
})

/** A listener of the proxy before a real server, with a credential of our own making. */
export async function openProxied({ use, account, ...parts }: ProxiedOptions): Promise<ProxiedDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'mfd-'))
  const lines: RequestLine[] = []
  const waiting = new Set<(line: RequestLine) => void>()
  const warnings: string[] = []
  const cuts = createTestCuts()
  let state: Live | Unusable = liveOf(account)
  const opened = await openDatabase({
    directory,
    cuts,
    held: {
      ...{ name: 'orders', backend: 'orders', type: use.protocol, uses: [] },
      placeholders: new Map([['password', PLACEHOLDER]]),
      now: () => state,
    },
    // The server names the accounts of its kinds.
    use: { name: 'database', host: '127.0.0.1', local: true, tls: 'disable', accounts: ['mysql'], ...use },
    recorder: {
      record(line) {
        lines.push(line)
        for (const look of waiting) look(line)
      },
    },
    resolver: { addresses: async () => ['127.0.0.1'] },
    isLocal: true,
    log: { warn: (message) => void warnings.push(message) },
    ...parts,
  })
  return {
    ...opened,
    ...{ lines, warnings, cuts },
    give(next) {
      state = next
    },
    current: () => state,
    nextLine: (decision) =>
      new Promise((resolve) => {
        const look = (line: RequestLine) => {
          if (decision !== undefined && line.decision !== decision) return
          waiting.delete(look)
          resolve(line)
        }
        waiting.add(look)
      }),
    async [Symbol.asyncDispose]() {
      await opened.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export function createTestCuts(): Cuts {
  const byId = new Map<string, Set<() => void>>()
  const ended = new Set<string>()
  const cut = (id: string) => {
    ended.add(id)
    const all = [...(byId.get(id) ?? [])]
    byId.delete(id)
    for (const destroy of all) destroy()
    return all.length
  }
  return {
    track(id, destroy) {
      if (ended.has(id)) destroy()
      const all = byId.get(id) ?? new Set()
      byId.set(id, all.add(destroy))
      return () => void all.delete(destroy)
    },
    cut,
    cutAll: () => [...byId.keys()].reduce((sum, id) => sum + cut(id), 0),
  }
}
