import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { identityFaults, loadIdentities } from '../../test/support/identity-config.ts'
import { failedCondition } from '../domain/identity/match.ts'
import { identityWarnings } from './identity-warnings.ts'

/** Conditions on subjects as people write them for clouds: whether each takes a subject, and whether it is safe. */
interface Vector {
  readonly id: string
  readonly issuer: 'github' | 'gitlab' | 'circleci' | 'bitbucket' | 'terraform-cloud'
  readonly claims: Readonly<Record<string, unknown>> & { readonly sub: string }
  /** All must hold; of the values of one, any. `like`: `*` and `?` are wildcards. */
  readonly conditions: readonly {
    readonly claim: string
    readonly like: boolean
    readonly values: readonly string[]
  }[]
  readonly matches: boolean
  readonly grade: 'safe' | 'caution' | 'dangerous' | null
}

const { vectors } = JSON.parse(
  readFileSync(new URL('../../test/support/subject-conditions.json', import.meta.url), 'utf8'),
) as { vectors: Vector[] }

const ISSUERS = {
  github: 'https://token.actions.githubusercontent.com',
  gitlab: 'https://gitlab.com',
  circleci: 'https://oidc.circleci.com/org/2a3b4c5d-1111-2222-3333-444455556666',
  bitbucket: 'https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc',
  'terraform-cloud': 'https://app.terraform.io',
}

const patternOf = (value: string, like: boolean) =>
  value.replace(/[\\^$.*+?()[\]{}|]/g, (special) =>
    like && special === '*' ? '.*' : like && special === '?' ? '.' : `\\${special}`,
  )

/** The entry that says the same. */
function entryOf({ issuer, conditions, claims }: Vector) {
  const rule = ({ like, values }: Vector['conditions'][number]) => {
    const [value = ''] = values
    if (values.length === 1 && (!like || !/[*?]/.test(value))) return value
    return { pattern: values.map((one) => patternOf(one, like)).join('|') }
  }
  const of = (name: string) => conditions.find(({ claim }) => claim === name)
  const [sub, aud] = [of('sub'), of('aud')]
  const subject = sub === undefined ? claims.sub : rule(sub)
  return {
    name: 'corpus',
    issuer: ISSUERS[issuer],
    audience: aud?.values[0] ?? 'https://mayfly.example.com',
    ...(typeof subject === 'string' ? { subject } : { subject_pattern: subject.pattern }),
    claims: Object.fromEntries(
      conditions.filter(({ claim }) => !['sub', 'aud'].includes(claim)).map((one) => [one.claim, rule(one)]),
    ),
    agent: 'corpus',
    scopes: ['demo:read'],
  }
}

/** Text that only a glob would give a meaning, or that no subject has, does not even start. */
const isLiteralGlob = ({ conditions }: Vector) =>
  conditions.some(
    ({ claim, like, values }) => claim === 'sub' && !like && values.some((one) => /\*| $/.test(one)),
  )

describe('the corpus of subjects', () => {
  test('has vectors of each platform and grade', () => {
    expect(vectors.length).toBeGreaterThan(70)
    expect(new Set(vectors.map(({ issuer }) => issuer))).toEqual(new Set(Object.keys(ISSUERS)))
    for (const grade of ['safe', 'caution', 'dangerous'])
      expect(vectors.filter((one) => one.grade === grade).length).toBeGreaterThan(15)
  })

  test.each(vectors.map((vector) => [vector.id, vector] as const))('%s', async (_, vector) => {
    const wire = entryOf(vector)
    const faults = await identityFaults({ identities: [wire] })
    if (faults.length > 0) {
      expect(isLiteralGlob(vector) || vector.grade === 'dangerous', faults.join('\n')).toBe(true)
      return
    }
    expect(isLiteralGlob(vector)).toBe(false)
    const { identities, platforms } = await loadIdentities({ identities: [wire] })
    const [entry] = identities
    if (entry === undefined) throw new Error('no entry')
    const claims = { aud: wire.audience, ...vector.claims }
    const failed = failedCondition(entry, { issuer: wire.issuer, subject: vector.claims.sub, claims })
    expect(failed === undefined, JSON.stringify(failed)).toBe(vector.matches)
    if (vector.grade === 'dangerous') expect(identityWarnings({ identities, platforms })).not.toEqual([])
  })
})
