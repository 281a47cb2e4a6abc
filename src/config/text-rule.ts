import { RE2JS } from 're2js'
import { InvalidValue, quote } from '../domain/fault.ts'
import type { TextRule } from '../domain/identity/identity.ts'

export function equalRule(text: string): TextRule {
  return { text, isPattern: false, matches: (value) => value === text }
}

/** A pattern in the syntax of RE2, over the whole value, in linear time. Throws `InvalidValue` with the reason. */
export function patternRule(text: string): TextRule {
  const compiled = compile(text)
  return { text, isPattern: true, matches: (value) => compiled.matches(value) }
}

function compile(text: string) {
  try {
    return RE2JS.compile(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : ''
    throw new InvalidValue(`${quote(text)} is not a pattern of RE2: ${reason}`)
  }
}

export interface IssuerPattern extends TextRule {
  /** Whether it takes an issuer that begins with this one and has `more` segments more, whatever they are. */
  reaches(issuer: string, more: number): boolean
}

/**
 * A pattern of issuers, compared segment by segment of `/`, so that none reaches into the next. The end of the host is
 * written out: whoever owns a name that the pattern takes could give out tokens for it. Throws `InvalidValue`.
 */
export function issuerPatternRule(text: string, isLocal: boolean): IssuerPattern {
  const [scheme = '', empty, host = '', ...path] = text.replaceAll(String.raw`\/`, '/').split('/')
  if (empty !== '' || host === '' || !(scheme === 'https:' || (scheme === 'http:' && isLocal)))
    throw new InvalidValue(
      `${quote(text)} does not begin with https:// and a host${isLocal ? '' : ' (http:// only with "local: true")'}`,
    )
  if (path.includes('')) throw new InvalidValue(`${quote(text)} has an empty part between slashes`)
  const segments = [host, ...path].map((segment) => compileSegment(segment))
  const [ofHost] = segments
  if (!isLocal && !/(?:^|\\\.)[a-z0-9-]+\\\.[a-z][a-z0-9-]*(?::\d+)?$/i.test(host))
    throw new InvalidValue(
      String.raw`${quote(text)} leaves open whose host it is: write its last two labels out, and its dots as "\."`,
    )
  if (STRANGE_HOSTS.some((strange) => ofHost?.matches(strange) === true))
    throw new InvalidValue(`${quote(text)} takes every host`)
  const beginsLike = (parts: readonly string[]) =>
    parts.every((part, index) => segments[index]?.matches(part) === true)
  return {
    text,
    isPattern: true,
    matches: (value) => {
      const parts = partsOf(value, scheme)
      return parts?.length === segments.length && beginsLike(parts)
    },
    reaches: (issuer, more) => {
      const parts = partsOf(issuer, scheme)
      return parts !== undefined && parts.length + more === segments.length && beginsLike(parts)
    },
  }
}

const STRANGE_HOSTS = ['a.example', 'tokens.strange.test', 'x1-y2.z3.invalid']

/** The host and the path; undefined: another scheme. */
function partsOf(issuer: string, scheme: string): string[] | undefined {
  const [first, empty, ...parts] = issuer.split('/')
  return first === scheme && empty === '' ? parts : undefined
}

function compileSegment(segment: string) {
  try {
    return patternRule(segment)
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    throw new InvalidValue(`${error.message}; each part between slashes is a pattern of its own`)
  }
}

/** Subjects that have nothing in common but what all have, or what all of one public platform have. */
const UNLIKE_SUBJECTS: readonly (readonly string[])[] = [
  ...[1, 7, 24, 60, 200].map((length) =>
    ['0', 'q', 'Z', '~', '|'].map((character) => character.repeat(length)),
  ),
  ['a:0', 'Z9:/y', `${'x'.repeat(40)}:1.2`, 'repo:a/b:c', 'urn:q:~'],
  // The same, in the forms of GitHub, GitLab, Buildkite and Terraform: all the world has accounts there.
  [
    'repo:octo-org/site:ref:refs/heads/main',
    'repo:acme@12345/shop@67890:environment:Production',
    'repo:z/y:pull_request',
    'repo:mallory/x:ref:refs/tags/v1',
  ],
  [
    'project_path:group/project:ref_type:branch:ref:main',
    'project_path:mallory/x/y:ref_type:tag:ref:v1',
    'project_path:a/b:ref_type:branch:ref:z',
  ],
  [
    'organization:acme:pipeline:super-duper:ref:refs/heads/main:commit:9f3182061f1e2cca4702c368cbc039b7dc9d4485:step:build',
    'organization:mallory:pipeline:x:ref:refs/tags/v1:commit:0000000000000000000000000000000000000000:step:null',
  ],
  [
    'organization:acme:project:Default Project:workspace:site:run_phase:plan',
    'organization:mallory:project:x:workspace:y:run_phase:apply',
  ],
]

/** Whether the pattern of a subject takes every subject, or everybody's of a platform with accounts for all. */
export function takesEverySubject(rule: TextRule): boolean {
  return rule.isPattern && UNLIKE_SUBJECTS.some((subjects) => subjects.every((one) => rule.matches(one)))
}

/** Whether it takes every workload of a trust domain. */
export function takesEveryWorkload(rule: TextRule, trustDomain: string): boolean {
  const paths = ['a', 'ns/prod/sa/Shop', '0/1/2/3', 'z_z.z-z']
  return rule.isPattern && paths.every((path) => rule.matches(`spiffe://${trustDomain}/${path}`))
}
