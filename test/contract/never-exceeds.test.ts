import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Issued, IssueRequest } from '../../src/backends/kind.ts'
import type { OpenBackend } from '../../src/backends/open-backends.ts'
import { createCallers } from '../../src/core/authentication/callers.ts'
import type { AgentCaller } from '../../src/core/caller.ts'
import type { Core } from '../../src/core/context.ts'
import { askBackend } from '../../src/core/credentials/ask-backend.ts'
import type { Attempt } from '../../src/core/credentials/issue-attempt.ts'
import { planIssue } from '../../src/core/credentials/plan-issue.ts'
import { Problem } from '../../src/domain/problems.ts'
import { isScope } from '../../src/domain/scope.ts'
import { ORIGIN } from '../support/core.ts'
import { LONG } from '../support/long.ts'
import { fillForm, hostileScopes, type Names, scope, scopesOf } from '../support/scopes.ts'
import { newAgent } from '../support/store.ts'
import { newCredentialId } from './open-kind.ts'
import { type Config, completeConfig, kindOfType } from './rights.ts'
import { createRights, formsOf, rightsOfKinds, titleOf } from './rights-of-kinds.ts'

const NOW = 1_800_000_000_000
const RUNS = LONG ? 2_000 : 100

/** All that decides what a credential is issued for. */
interface Case {
  readonly backend: string
  /** Absolute. */
  readonly held: readonly string[]
  /** Held until a time that is to come, and until one that has passed. */
  readonly extra: readonly string[]
  readonly expired: readonly string[]
  /** Absolute; undefined: the agent's own bearer. */
  readonly token: readonly string[] | undefined
  /** Relative; undefined: all. */
  readonly allowed: readonly string[] | undefined
  readonly asked: readonly string[] | undefined
}

/** The decision as core makes it, up to what the kind is asked for; a refusal is a `Problem`. */
async function decide(one: Case, type: string, config: Config): Promise<readonly string[] | Problem> {
  const agent = newAgent({ scopes: one.held })
  const grant = { agentId: agent.id, createdAt: 1 }
  const core = {
    store: {
      now: () => NOW,
      agents: {
        findLiving: async () => agent,
        grantsOf: async () => [
          { ...grant, id: 'extra', scopes: one.extra, expiresAt: NOW + 1 },
          { ...grant, id: 'expired', scopes: one.expired, expiresAt: NOW },
        ],
      },
    },
    settings: { policies: [] },
    ids: { id: () => newCredentialId() },
  } as unknown as Core
  const token = { agentId: agent.id, rotation: 0, accessToken: undefined } as unknown as AgentCaller
  const method = one.token === undefined ? 'opaque' : 'jwt'
  const caller = await createCallers(core).refresh({ ...token, method, scopes: one.token ?? [] }, 1)
  if (caller === undefined) throw new Error('the agent is not alive')
  let asked: IssueRequest<unknown> | undefined
  const backend = {
    name: one.backend,
    // Without its breakers, which are another matter.
    kind: { ...kindOfType(type), upstream: false },
    config,
    allowedScopes: one.allowed,
    defaultTtlMs: 3_600_000,
    maxTtlMs: 3_600_000,
    connect: async () => ({
      issue: async (request: IssueRequest<unknown>): Promise<Issued> => {
        asked = request
        return { secret: 'secret' }
      },
    }),
  } as unknown as OpenBackend
  const command = { backend: one.backend, scopes: one.asked, ttl: undefined }
  const holder = { ...caller, timed: [] }
  const attempt: Attempt = {
    actor: { caller: holder, origin: ORIGIN },
    command,
    backend,
    plan: undefined,
    isRecorded: false,
  }
  try {
    const plan = planIssue(core, { caller: holder, command }, backend, undefined)
    await askBackend(core, { ...attempt, holder, backend, plan })
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  return asked?.scopes ?? []
}

/** The grammar of decisions.md §3.1, once more: as a regular expression. */
function permits(patterns: readonly string[], wanted: string): boolean {
  return patterns.some((pattern) => {
    const parts = pattern.split(':').map((part) => {
      const literal = part.replace(/[^A-Za-z0-9*]/g, '\\$&')
      return literal.replace(/\*$/, '[^:]*')
    })
    const isMatch = new RegExp(`^${parts.join(':')}(?::|$)`).test(wanted)
    return isMatch && (!/^admin(:|$)/.test(wanted) || /^admin(:|$)/.test(pattern))
  })
}

/** Scopes of every origin: of the kind, of another backend, of everything, and of none. */
function cases(forms: readonly string[], names: Names): fc.Arbitrary<Case> {
  const relative = scopesOf(forms, names)
  const namesake = relative.map((text) => /^[A-Za-z0-9.-]+/.exec(text)?.[0] ?? 'here')
  const lists = fc.array(relative, { maxLength: 4 })
  return fc.oneof({ weight: 3, arbitrary: fc.constant('here') }, namesake).chain((backend) => {
    const absolute = fc.oneof(
      { weight: 6, arbitrary: relative.map((text) => `${backend}:${text}`).filter(isScope) },
      fc.constantFrom(backend, `${backend}:*`, '*', 'admin:*', 'other', `${backend}x`),
      scope,
    )
    const asking = fc.oneof({ weight: 6, arbitrary: relative }, absolute, hostileScopes(relative))
    const held = fc.array(absolute, { maxLength: 3 })
    // What all name, so that something is left of the intersection often enough.
    return fc
      .tuple(
        lists,
        held,
        held,
        held,
        fc.option(held, { nil: undefined }),
        fc.option(lists, { nil: undefined }),
        fc.option(fc.array(asking, { maxLength: 2 }), { nil: undefined }),
        fc.boolean(),
      )
      .map(([common, own, extra, expired, token, allowed, asked, isAsked]): Case => {
        const all = common.map((text) => `${backend}:${text}`).filter(isScope)
        return {
          backend,
          held: [...own, ...all],
          extra,
          expired,
          token: token && [...token, ...all],
          allowed: allowed && [...allowed, ...common],
          asked: asked && [...asked, ...(isAsked ? common : [])],
        }
      })
  })
}

/** An agent that holds all of the backend, and asks for all of it. */
const PLAIN: Case = {
  backend: 'here',
  held: ['here'],
  extra: [],
  expired: [],
  token: undefined,
  allowed: undefined,
  asked: undefined,
}

/** Whether the agent, its token and the backend all permit this scope, which begins with the name of the backend. */
function isWithin({ backend, held, extra, token, allowed }: Case, absolute: string): boolean {
  const relative = absolute === backend ? '*' : absolute.slice(backend.length + 1)
  const isOfToken = token === undefined || permits(token, absolute)
  const isOfBackend = allowed === undefined || permits(allowed, relative)
  return permits([...held, ...extra], absolute) && isOfToken && isOfBackend
}

describe.each(rightsOfKinds.map((of) => [titleOf(of), of] as const))('a credential of %s', (_, of) => {
  const { scopes: grammar } = kindOfType(of.type)
  const drawn = cases(formsOf(of), of.names)
  // Each property has an example to which it applies.
  const first = fillForm(formsOf(of)[0] ?? '', of.names, ([name = '']) => name)
  let config: Config
  let rightsOf: Awaited<ReturnType<typeof createRights>>
  const gives = (text: string) => grammar.gives?.(config, text) ?? true
  beforeAll(async () => {
    config = await completeConfig(of)
    rightsOf = await createRights(of)
  })

  it('never exceeds the agent, the token and the backend', async () => {
    let issues = 0
    const property = fc.asyncProperty(drawn, async (one) => {
      const issued = await decide(one, of.type, config)
      if (issued instanceof Problem) return
      const isPermitted = (text: string) => isWithin(one, `${one.backend}:${text}`)
      const beyond = issued.filter((text) => !grammar.valid(text) || !isPermitted(text))
      const rights = [...((await rightsOf(issued))?.values() ?? [])]
      const unpermitted = rights.filter(({ by }) => !by.some(isPermitted))
      if (rights.length > 0) issues += 1
      expect({ issued, beyond, unpermitted }).toEqual({ issued, beyond: [], unpermitted: [] })
    })
    await fc.assert(property, { numRuns: RUNS, examples: [[{ ...PLAIN, asked: [first] }]] })
    expect(issues).toBeGreaterThan(0)
  })

  it('is for exactly what was requested, or refused', async () => {
    const seen = { issued: 0, refused: 0 }
    const property = fc.asyncProperty(drawn, async ({ asked = [], ...rest }) => {
      const one: Case = { ...rest, asked }
      // The name of the backend in front may also be that of a resource.
      const isUnclear = (text: string) => /^here(:|$)/.test(text) && grammar.valid(text) && gives(text)
      fc.pre(one.backend === 'here' && asked.length > 0 && !asked.some(isUnclear))
      const absolute = asked.map((text) => (/^here(:|$)/.test(text) ? text : `here:${text}`))
      const meant = absolute.map((text) => (text === 'here' ? '*' : text.slice('here:'.length)))
      const isGiven = absolute.every(
        (text, index) => isScope(text) && grammar.valid(meant[index] ?? '') && isWithin(one, text),
      )
      const issued = await decide(one, of.type, config)
      const code = issued instanceof Problem ? issued.code : undefined
      seen[isGiven ? 'issued' : 'refused'] += 1
      if (isGiven) expect(issued).toEqual(meant)
      else expect(['scope_not_allowed', 'invalid_request']).toContain(code)
    })
    const examples: [Case][] = [[{ ...PLAIN, asked: [first] }], [{ ...PLAIN, allowed: [], asked: [first] }]]
    await fc.assert(property, { numRuns: RUNS, maxSkipsPerRun: 1_000, examples })
    expect(Math.min(seen.issued, seen.refused)).toBeGreaterThan(0)
  })

  it('holds what all three name, where no scopes were requested', async () => {
    let named = 0
    const property = fc.asyncProperty(drawn, async (drawn) => {
      const one: Case = { ...drawn, asked: undefined }
      const { backend, held, token, allowed } = one
      const start = `${backend}:`
      const all = held.filter(
        (text) =>
          text.startsWith(start) &&
          (token?.includes(text) ?? true) &&
          (allowed?.includes(text.slice(start.length)) ?? true),
      )
      const relative = all.map((text) => text.slice(start.length))
      const possible = relative.filter((text) => grammar.valid(text) && gives(text))
      const issued = await decide(one, of.type, config)
      const scopes = issued instanceof Problem ? [] : issued
      named += possible.length
      // As core compares them: with the name of the backend in front.
      const absolute = scopes.map((text) => start + text)
      expect(possible.filter((text) => !permits(absolute, start + text))).toEqual([])
    })
    await fc.assert(property, { numRuns: RUNS, examples: [[{ ...PLAIN, held: [`here:${first}`] }]] })
    expect(named).toBeGreaterThan(0)
  })
})
