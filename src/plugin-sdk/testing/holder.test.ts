import { describe, expect, it } from 'vitest'
import type { Handle, Issued } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { describeHolder } from './holder.ts'
import type { OpenKind } from './open-kind.ts'

interface Server {
  drop(name: string): void
  has(name: string): boolean
  /** Whether the holder of that credential uses its trick. */
  isHeld(name: string): boolean
}

const nameOf = ({ handle }: Pick<Issued, 'handle'>) => String(handle?.['name'])

/** A kind that revokes as said, whose upstream is a set of names. */
function openFake(revoke: (server: Server, name: string) => Promise<void>): OpenKind {
  const names = new Set<string>()
  const held = new Set<string>()
  const backendOf = (drop: Server['drop']) => ({
    issue: async ({ credentialId }: { credentialId: string }) => {
      names.add(credentialId)
      return { handle: { name: credentialId } }
    },
    revoke: (handle: Handle) =>
      revoke({ drop, has: (name) => names.has(name), isHeld: (name) => held.has(name) }, nameOf({ handle })),
    [Symbol.asyncDispose]: async () => undefined,
  })
  const works = async (issued: Issued) => names.has(nameOf(issued))
  const trick = async (issued: Issued) => {
    held.add(nameOf(issued))
    return {
      works: () => works(issued),
      [Symbol.asyncDispose]: async () => void held.delete(nameOf(issued)),
    }
  }
  return {
    backend: backendOf((name) => names.delete(name)),
    scopes: [],
    tricks: { holds: trick },
    probe: { exists: async (handle: Handle) => names.has(nameOf({ handle })), use: works },
    disarmed: async () => backendOf(() => undefined),
  } as unknown as OpenKind
}

/** What each test of the suite fails with, or nothing. */
async function runSuite(open: OpenKind): Promise<string[]> {
  const bodies: (() => Promise<void>)[] = []
  const none = () => undefined
  const it = (_: string, body: () => Promise<void>) => bodies.push(body)
  describeHolder({ describe: none, before: none, after: none, it }, () => open)
  const outcomes = await Promise.allSettled(bodies.map((body) => body()))
  return outcomes.map((outcome) => (outcome.status === 'rejected' ? String(outcome.reason) : ''))
}

describe('the hostile holder of the contract', () => {
  it('passes a kind that looks at the end, and tries again after a refusal', async () => {
    const refused = new Set<string>()
    const careful = openFake(async (server, name) => {
      if (!refused.has(name)) {
        refused.add(name)
        throw new BackendError('denied', 'Not yet.')
      }
      server.drop(name)
      if (server.has(name)) throw new BackendError('denied', 'It is still there.')
    })
    expect(await runSuite(careful)).toEqual(['', '', ''])
  })

  it('fails a kind whose revocation a trick escapes', async () => {
    const credulous = openFake(async (server, name) => {
      if (!server.isHeld(name)) server.drop(name)
    })
    const [alone, among] = await runSuite(credulous)
    expect(alone).toContain('holds: works after its end')
    expect(among).not.toBe('')
  })

  it('fails a kind that believes what its upstream says', async () => {
    const credulous = openFake(async (server, name) => server.drop(name))
    expect(await runSuite(credulous)).toEqual(['', '', expect.stringContaining('Missing expected rejection')])
  })
})
